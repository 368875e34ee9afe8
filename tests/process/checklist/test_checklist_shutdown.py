"""The client's checklist, part 4: the end of the process, and clients that do not read."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.process.homes import Home, call, calls, says
from tests.support.wire import never
from tests.support.wire_talk import READS_FILES, greet, of_kind, text_of

SOON = 2.5
"""Seconds until the process has ended: two, and some for a machine under load."""
SLEEPING_RIPGREP = "#!/bin/sh\necho $$ > '{mark}'\nexec sleep 600\n"


def with_sleeping_child(home: Home) -> Callable[[], int]:
    """Let searches run a child that never ends by itself; returns a function that gives its id."""
    tools, mark = home.root / "bin", home.root / "child"
    tools.mkdir()
    (tools / "rg").write_text(SLEEPING_RIPGREP.format(mark=mark))
    (tools / "rg").chmod(0o755)
    home.extra_env["PATH"] = f"{tools}:{home.env['PATH']}"
    return lambda: int(mark.read_text())


async def child_runs(child: Callable[[], int]) -> int:
    """Wait until the child is there."""
    with trio.fail_after(20):
        while True:
            try:
                return child()
            except (FileNotFoundError, ValueError):
                await trio.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks for children in /proc")
@pytest.mark.parametrize("ending", ["stdin", "SIGTERM", "SIGINT", "SIGHUP"])
async def test_the_end_in_the_middle_of_a_turn_with_a_child_running(home: Home, ending: str) -> None:
    """Exit 0 soon, no orphan, and the turn is in the transcript as cancelled, with its call."""
    child = with_sleeping_child(home)
    home.script(says("Searching.", calls=[call("search_text", pattern="x")]))
    async with home.talk() as talk:
        await talk.ask("go")
        pid = await child_runs(child)
        started = time.monotonic()
        if ending != "stdin":
            talk.agent.process.send_signal(signal.Signals[ending])
            assert await talk.agent.wait() == 0
        assert await talk.agent.close() == 0
        assert time.monotonic() - started < SOON
        assert not alive(pid)
    home.script(echo="yes")
    async with home.resumed(talk) as replay:
        assert text_of(replay) == "Searching."
        assert of_kind(replay, "tool_call")[0]["status"] == "failed"
        assert (await talk.turn("go on")).text == "yes"


async def test_the_end_while_a_client_owes_an_answer(home: Home) -> None:
    home.script(calls(call("read_file", path="a.txt")), echo="yes")
    async with home.talk(READS_FILES, handlers={"fs/read_text_file": never}) as talk:
        await talk.ask("go")
        await talk.agent.until(lambda frame: frame.get("method") == "fs/read_text_file")
        assert await talk.agent.close(seconds=SOON) == 0


async def test_the_end_of_input_lets_what_was_asked_before_be_answered(home: Home) -> None:
    async with home.start() as agent:
        await greet(agent)
        request_id = await agent.request("session/new", {"cwd": str(home.work), "mcpServers": []})
        assert await agent.close() == 0
        assert (await agent.result(request_id))["sessionId"]


async def test_a_broken_output_pipe_is_an_end_without_noise(home: Home) -> None:
    """The turn is recorded all the same."""
    home.script(says([f"word {n} " for n in range(100)], chunk_delay=0.01))
    async with home.talk() as talk:
        await talk.ask("go")
        await talk.see("agent_message_chunk")
        assert talk.agent.process.stdout is not None
        await talk.agent.process.stdout.aclose()
        with trio.fail_after(20):
            assert await talk.agent.process.wait() == 0
    home.script(echo="yes")
    async with home.resumed(talk) as replay:
        assert text_of(replay).startswith("word 0 ")
        assert (await talk.turn("go on")).text == "yes"


async def test_cancel_is_heard_while_the_output_pipe_is_full(home: Home) -> None:
    """A client that reads nothing more sends a cancel; when it reads again, it finds the turn cancelled."""
    home.script(says(["y" * 100_000] * 200, chunk_delay=0.001, hang=True), echo="yes")
    async with home.talk() as talk:
        asked = await talk.ask("go")
        await talk.see("agent_message_chunk")
        talk.agent.inbox.pause()
        await trio.sleep(0.3)
        await talk.cancel()
        await trio.sleep(0.3)
        talk.agent.inbox.unpause()
        assert (await talk.end_of(asked)).stop == "cancelled"
        assert (await talk.turn("go on")).text == "yes"


async def test_a_client_that_never_reads_does_not_keep_the_process_alive(home: Home) -> None:
    home.script(says(["y" * 100_000] * 200, hang=True))
    async with home.talk() as talk:
        await talk.ask("go")
        await talk.see("agent_message_chunk")
        talk.agent.inbox.pause()
        assert talk.agent.process.stdin is not None
        await talk.agent.process.stdin.aclose()
        with trio.fail_after(SOON * 2):
            assert await talk.agent.process.wait() == 0
        talk.agent.inbox.torn_is_fine = True
        talk.agent.inbox.unpause()


def test_a_closed_stdin_is_an_end(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acp_server"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=home.env,
        cwd=home.spawn,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("inof", b'WHOLETURN_LOG=inof is no level; did you mean "info"?; warning is used'),
        ("\x1b[2J", b"WHOLETURN_LOG=\\x1b[2J is no level (there is debug, error, info, warning)"),
        ("WARN", b""),
        ("", b""),
    ],
)
def test_a_log_level_that_there_is_not_is_one_line_on_stderr(home: Home, level: str, said: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acp_server"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=home.env | {"WHOLETURN_LOG": level},
        cwd=home.spawn,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert said in done.stderr
    assert done.stderr.count(b"\n") == bool(said)


def test_an_output_that_is_shared_with_stderr_still_works(home: Home) -> None:
    """Both on one pipe, as some hosts have it: the protocol must not lose a byte."""
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(
        [sys.executable, "-m", "acp_server"],
        input=hello,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=home.env | {"WHOLETURN_LOG": "error"},
        cwd=home.spawn,
        timeout=30,
    )
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1
    assert b'"protocolVersion":1' in done.stdout
