"""run_command: output and exit, bounded, nothing left behind; in a terminal of the client or here."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from runtime.ports import ExitStatus, TerminalOutput, ToolProgress
from runtime.tools.arguments import ToolSettings
from runtime.tools.shell.run_command import MAX_OUTPUT, RunCommand
from runtime.tools.shell.shell import environment, shell
from runtime.values.errors import ToolError
from tests.runtime.tools.support import Terminals, Watcher, context, text_of

TOOL = RunCommand()
LINUX = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc")


async def run(where: Path, command: str, **more: object):
    with trio.fail_after(30):
        return await TOOL.run({"command": command, **more}, context(where))


async def gone(pid: int) -> bool:
    """Whether the process is dead, or will be in a moment."""
    with trio.move_on_after(5):
        while is_alive(pid):  # noqa: ASYNC110 (the end of a process that is not our child tells nobody)
            await trio.sleep(0.01)
    return not is_alive(pid)


def is_alive(pid: int) -> bool:
    """Not so: one that is dead and that nobody has asked about yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def pids(folder: Path) -> list[int]:
    return [int(text) for text in (folder / "pids").read_text().split()]


@pytest.mark.parametrize(
    ("command", "text", "failed"),
    [
        ("echo out; echo err >&2", "out\nerr\n[exit code 0]", False),
        ("printf x; exit 3", "x\n[exit code 3]", True),
        ("true", "[exit code 0; no output]", False),
        ("kill -TERM $$", "[ended by SIGTERM; no output]", True),
        ("cat", "[exit code 0; no output]", False),
        ("printf 'a\\rb\\n\\033[31mred\\033[0m\\007\\n'", "b\nred\n[exit code 0]", False),
        ("printf '\\377ok\\n'", "\ufffdok\n[exit code 0]", False),
        ("no-such-program-at-all 2>/dev/null", "[exit code 127; no output]", True),
        ("echo \"a b\" 'c'  $((1+2))", "a b c 3\n[exit code 0]", False),
    ],
)
async def test_output_and_exit(tmp_path, command, text, failed):
    outcome = await run(tmp_path, command)
    assert (outcome.text, outcome.failed) == (text, failed)


async def test_the_end_of_a_long_output_is_kept(tmp_path):
    outcome = await run(tmp_path, "for i in $(seq 1 20000); do echo line $i; done; exit 1")
    text, _, note = outcome.text.rpartition("\n")
    assert text.endswith("line 19999\nline 20000")
    assert len(text) <= MAX_OUTPUT
    assert note.startswith("[exit code 1; the first ")
    assert text.startswith("line 1")


async def test_what_nobody_had_time_to_read_is_output_too(tmp_path, monkeypatch):
    """The machine may be so busy that the time for it is over when it could be read."""

    async def too_late(*_: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr("runtime.tools.shell.shell._read", too_late)
    command = "head -c 30000 /dev/zero | tr '\\0' x; echo; echo last"
    text = await text_of(TOOL, context(tmp_path), command=command)
    assert text.endswith("x\nlast\n[exit code 0]")
    assert text.count("x") == 30_001


async def test_cwd(tmp_path):
    (tmp_path / "sub").mkdir()
    assert (await run(tmp_path, "pwd", cwd="sub")).text.startswith(str(tmp_path / "sub"))
    for cwd, said in (("none", "is no folder"), ("..", "outside the folders"), ("f", "is no folder")):
        (tmp_path / "f").touch()
        with pytest.raises(ToolError, match=said):
            await run(tmp_path, "pwd", cwd=cwd)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "needs the argument command"),
        ({"command": " \n"}, "command is empty"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "\ud800"}, "surrogate"),
        ({"command": "x" * 200_000}, "too long"),
        ({"command": "true", "timeout": 0}, "timeout must be a whole number from 1 to 600"),
    ],
)
async def test_bad_calls(tmp_path, arguments, said):
    with pytest.raises(ToolError, match=said):
        await TOOL.run(arguments, context(tmp_path))


async def test_a_shell_that_cannot_be_started(tmp_path, monkeypatch):
    monkeypatch.setattr("runtime.tools.shell.shell.shell", lambda: ("/no/such/shell", "-c"))
    with pytest.raises(ToolError, match="could not be started"):
        await run(tmp_path, "true")


# ---------------------------------------------------------------- nothing is left

STUBBORN = (
    "trap '' TERM; (trap '' TERM; sleep 300) & echo $! $$ > pids; setsid sleep 300 & echo $! >> pids; wait"
)


@LINUX
async def test_the_time_limit_ends_all_of_it(tmp_path):
    outcome = await run(tmp_path, f"echo begun; {STUBBORN}", timeout=1)
    assert (outcome.text, outcome.failed) == ("begun\n[stopped after 1 s]", True)
    for pid in pids(tmp_path):
        assert await gone(pid)


@LINUX
async def test_a_cancel_ends_all_of_it_within_a_second(tmp_path):
    watcher = Watcher()
    where = replace(context(tmp_path), progress=watcher)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(TOOL.run, {"command": f"echo begun; {STUBBORN}"}, where)
            await watcher.seen.wait()
            before = trio.current_time()
            nursery.cancel_scope.cancel()
    assert trio.current_time() - before < 2
    for pid in pids(tmp_path):
        assert await gone(pid)


@LINUX
async def test_what_stays_in_the_background_ends_with_the_command(tmp_path):
    outcome = await run(
        tmp_path, "sleep 300 & echo $! > pids; set -m; sleep 300 & echo $! >> pids; echo done"
    )
    assert outcome.text == "done\n[exit code 0; processes that it had left running were stopped]"
    for pid in pids(tmp_path):
        assert await gone(pid)


@LINUX
async def test_only_a_session_of_its_own_goes_on_as_the_model_is_told(tmp_path):
    told = TOOL.spec.description
    assert "jobs that it leaves are stopped" in told
    assert "a daemon that made a session of its own goes on" in told
    outcome = await run(
        tmp_path, "setsid sh -c 'echo $$ > pids; exec sleep 300' & while [ ! -s pids ]; do :; done"
    )
    assert outcome.text == "[exit code 0; no output]"
    (pid,) = pids(tmp_path)
    os.kill(pid, signal.SIGKILL)  # raises when it is gone
    assert await gone(pid)


async def test_a_process_has_time_to_clean_up(tmp_path):
    await run(tmp_path, "trap 'echo bye > said; exit' TERM; sleep 300 & wait", timeout=1)
    assert (tmp_path / "said").read_text() == "bye\n"


async def test_no_descriptor_is_left_open(tmp_path):
    await run(tmp_path, "true")
    before = len(os.listdir("/dev/fd"))
    for command in ("true", "sleep 300 &", "yes | head -c 100000"):
        await run(tmp_path, command)
    with trio.move_on_after(0.3):
        await run(tmp_path, "sleep 300")
    assert len(os.listdir("/dev/fd")) == before


# ---------------------------------------------------------------- while it runs


async def test_live_output_is_its_newest_part(tmp_path):
    watcher = Watcher()
    where = replace(context(tmp_path), progress=watcher)
    command = "seq 1 5000; while [ ! -e go ]; do sleep 0.02; done; echo end"
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(TOOL.run, {"command": command}, where)
            await watcher.seen.wait()
            (tmp_path / "go").touch()
    (first, *_) = watcher.shown
    assert first.text.endswith("4999\n5000\n")
    assert len(first.text) <= 8_000
    assert (first.terminal_id, first.diffs) == ("", ())


def test_environment_without_our_keys():
    given = {
        "PATH": "/bin",
        "MY_KEY": "k",
        "WHOLETURN_PROVIDERS__P__HEADERS": "secret",
        "OTHER_KEY": "o",
        "TERM": "xterm",
    }
    assert environment(frozenset({"MY_KEY"}), given) == {"PATH": "/bin", "OTHER_KEY": "o", "TERM": "dumb"}


async def test_a_command_does_not_see_our_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "hunter2")
    monkeypatch.setenv("NOT_OURS", "visible")
    tool = RunCommand(ToolSettings(withheld=frozenset({"MY_KEY"})))
    outcome = await tool.run({"command": 'echo "[$MY_KEY] $NOT_OURS"'}, context(tmp_path))
    assert outcome.text.startswith("[] visible\n")


# ---------------------------------------------------------------- a client with terminals


async def in_terminal(where: Path, client: Terminals, **more: object):
    watcher = Watcher()
    with trio.fail_after(30):
        arguments = {"command": "make test", **more}
        outcome = await TOOL.run(arguments, replace(context(where, client=client), progress=watcher))
    return outcome, watcher.shown


async def test_in_a_terminal(tmp_path):
    client = Terminals(TerminalOutput("1 passed\n"), ExitStatus(0))
    outcome, shown = await in_terminal(tmp_path, client)
    assert (outcome.text, outcome.failed, outcome.terminal_id) == ("1 passed\n[exit code 0]", False, "term-1")
    assert shown == [ToolProgress(terminal_id="term-1")]
    assert client.calls == ["wait", "output", "release"]
    (command,) = client.commands
    assert (command.command, *command.arguments) == (*shell(), "make test")
    assert (command.cwd, command.output_limit) == (tmp_path, MAX_OUTPUT)


async def test_a_terminal_is_told_the_editors_spelling_of_the_folder(tmp_path):
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    client = Terminals(TerminalOutput(""), ExitStatus(0))
    await in_terminal(tmp_path / "link", client, cwd="sub")
    assert client.commands[0].cwd == tmp_path / "link/sub"


@pytest.mark.parametrize(
    ("status", "output", "text"),
    [
        (ExitStatus(2), TerminalOutput("x", truncated=True), "x\n[exit code 2; the beginning is left out]"),
        (ExitStatus(None, "SIGSEGV"), TerminalOutput(""), "[ended by SIGSEGV; no output]"),
        (ExitStatus(), TerminalOutput("x\n"), "x\n[ended, exit code not known]"),
    ],
)
async def test_how_a_terminal_ends(tmp_path, status, output, text):
    outcome, _ = await in_terminal(tmp_path, Terminals(output, status))
    assert outcome.text == text


async def test_a_terminal_past_its_time(tmp_path):
    client = Terminals(TerminalOutput("slow\n"))
    outcome, _ = await in_terminal(tmp_path, client, timeout=1)
    assert (outcome.text, outcome.failed) == ("slow\n[stopped after 1 s]", True)
    assert client.calls == ["wait", "kill", "output", "release"]


async def test_a_cancel_releases_the_terminal(tmp_path):
    client, watcher = Terminals(TerminalOutput("")), Watcher()
    where = replace(context(tmp_path, client=client), progress=watcher)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(TOOL.run, {"command": "sleep 300"}, where)
            await watcher.seen.wait()
            nursery.cancel_scope.cancel()
    assert client.calls[-1] == "release"


# ---------------------------------------------------------------- before it runs


async def test_request(tmp_path):
    request = await TOOL.request({"command": "git status; rm -rf x"}, context(tmp_path))
    assert (request.action, request.subject) == ("execute", "git status; rm -rf x")
    assert (request.paths, request.outside, request.risk) == ((tmp_path,), False, "")
    outside = await TOOL.request({"command": "ls", "cwd": "/etc"}, context(tmp_path))
    assert outside.outside
    hidden = await TOOL.request({"command": "ls \u200b\n\tx"}, context(tmp_path))
    assert hidden.risk == "it holds characters that cannot be seen"
    assert (await TOOL.request({"command": "a\n\tb"}, context(tmp_path))).risk == ""


@pytest.mark.parametrize(
    ("command", "title"),
    [("make test", "make test"), ("a\nb", '"a\\nb"'), ("", "Run a command"), (3, "Run a command")],
)
def test_view(tmp_path, command, title):
    assert TOOL.view({"command": command}, context(tmp_path)).title == title
