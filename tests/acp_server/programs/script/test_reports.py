"""What a person reads: the first difference of each kind of failure, and the command line around it."""

import json
import re
import signal
import subprocess
import sys

import pytest

from acp_server.programs.script.play import outcome_text
from tests.acp_server.programs.script.support import (
    CHUNK,
    COMMAND,
    DONE,
    OPEN,
    USAGE,
    fails,
    passes,
    prompt,
    run,
)


async def test_another_frame():
    report = await fails(
        {"note": "the first word"}, prompt("words a"),
        {"expect": {"params": {"sessionId": "$SESSION", "update": {"content": {"text": "b "}}}}},
    )  # fmt: skip
    lines = report.split("\n")
    assert lines[0] == "FAIL talk.jsonl:7: another frame came"
    assert lines[1] == "  after the note: the first word"
    assert lines[2].startswith('  step      {"expect": {"params": {"sessionId": "$SESSION"')
    assert lines[3:6] == [
        "  differs at .params.update.content.text",
        '  expected  "b "',
        '  came      "a "',
    ]
    assert lines[6].startswith('  in        {"jsonrpc":"2.0","method":"session/update"')
    assert lines[7] == "  last lines (-> sent, <- received):"
    assert any(line.startswith('    -> {"jsonrpc":"2.0","id":3,"method":"session/prompt"') for line in lines)
    assert any(line.startswith('    <- {"jsonrpc": "2.0", "method": "session/update"') for line in lines)


async def test_missing_key_and_key_too_many():
    report = await fails(prompt("words a"), {"expect": {"params": {"update": {"messageId": "$string"}}}})
    assert 'differs at .params.update.messageId\n  expected  "$string"\n  came      nothing\n' in report
    report = await fails(
        prompt("words a"), {"expect": {"params": {"update": {"$exact": CHUNK["params"]["update"]}}}}
    )
    assert 'differs at .params.update.content\n  expected  nothing more\n  came      {"type":"text"' in report


async def test_captured_value_is_shown_as_itself():
    report = await fails(
        prompt("words a"), {"set": {"S": "other"}}, {"expect": {"params": {"sessionId": "$S"}}}
    )
    assert 'differs at .params.sessionId\n  expected  "other"\n  came      "s-1"' in report


async def test_none_of_any_order():
    report = await fails(prompt("words a"), {"any_order": [{"id": 9}, {"method": "x/y"}]})
    assert "talk.jsonl:6: another frame came (none of the 2 that are waited for)" in report


async def test_any_order_that_stays_incomplete():
    report = await fails(
        prompt("words a"), {"any_order": [CHUNK, USAGE, DONE["expect"], {"id": 9}], "timeout": 1.5}
    )
    assert "talk.jsonl:6: 1 of 4 did not come within 1.5 s" in report


async def test_time_out():
    report = await fails({"expect": {"id": 9}, "timeout": 0.2})
    assert report.startswith("FAIL talk.jsonl:5: no frame came within 0.2 s\n")


async def test_until_shows_the_nearest():
    want = {"method": "session/update", "params": {"update": {"sessionUpdate": "usage_update", "used": 9}}}
    report = await fails(prompt("words a"), {"until": want, "timeout": 1.5})
    assert report.startswith("FAIL talk.jsonl:6: no matching frame came within 1.5 s\n")
    assert "differs at .params.update.used\n  expected  9\n  came      1\n" in report


async def test_until_at_the_end_of_the_agent():
    report = await fails(prompt("die 5"), {"until": {"id": 9}})
    assert report.startswith("FAIL talk.jsonl:6: the agent's stdout is at its end (it ended with status 5)\n")
    assert report.endswith("  the agent's stderr, its end:\n    about to die")


async def test_expect_at_the_end_of_the_agent_and_sending_to_it():
    report = await fails(prompt("die 5"), {"expect": {"id": 9}})
    assert "the agent's stdout is at its end (it ended with status 5)" in report
    report = await fails(prompt("die 5"), {"exit": 5}, {"send": {"id": 4, "method": "x"}})
    assert "talk.jsonl:7: the agent's stdin is closed (it ended with status 5)" in report
    report = await fails({"close": True}, {"send": {"id": 4, "method": "x"}})
    assert "talk.jsonl:6: the agent's stdin is closed" in report


async def test_frame_that_must_not_come():
    report = await fails(prompt("words a"), {"none": USAGE, "for": 5})
    assert "talk.jsonl:6: a frame came that must not come" in report
    assert '"sessionUpdate":"usage_update"' in report


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hello", "it is|Expecting value"),
        ("{", "Expecting property name"),
        ('{"x":NaN}', "NaN is not JSON"),
        ('{"x":1} {"y":2}', "Extra data"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
async def test_stray_line(line, said):
    report = await fails(prompt(f"stray {line}"), {"until": {"id": 9}})
    assert re.search(f"talk.jsonl:6: the agent's stdout holds a line that is no frame: .*{said}", report)


async def test_stray_line_that_nobody_waits_for_fails_at_the_end():
    report = await fails(prompt("stray hello"), {"close": True}, {"exit": 0})
    assert "talk.jsonl:7: the agent's stdout holds a line that is no frame" in report
    assert '  in        "hello"' in report
    report = await fails(prompt("stray hello"), {"close": True}, {"exit": 0}, {"restart": True})
    assert "talk.jsonl:8: the agent's stdout holds a line that is no frame" in report


async def test_line_without_an_end():
    report = await fails(prompt("torn"), {"expect": {"id": 3}})
    assert "a line that is no frame: it does not end with a line feed" in report


async def test_text():
    report = await fails(prompt("words a b"), {"until": DONE["expect"]}, {"text": {"$contains": "c"}})
    assert "talk.jsonl:7: the agent's text is not as expected" in report
    assert 'expected  {"$contains":"c"}\n  came      "a b "' in report


async def test_exit():
    report = await fails({"close": True}, {"exit": 1})
    assert "talk.jsonl:6: the agent ended with another status\n" in report
    assert "expected  1\n  came      0\n" in report
    assert "talk.jsonl:5: the agent still runs after 0.1 s" in await fails({"exit": 0, "timeout": 0.1})


async def test_frame_that_cannot_be_answered():
    report = await fails(prompt("words a"), {"expect": CHUNK, "answer": {}})
    assert "talk.jsonl:6: there is nothing to answer: the frame has no id" in report


@pytest.mark.parametrize(
    "step", [{"send": {"id": "$NONE"}}, {"expect": {"id": "$NONE"}}, {"set": {"A": "${NONE}"}}]
)
async def test_variable_without_value(step):
    report = await fails(prompt("words"), step)
    assert (
        "talk.jsonl:6: the variable NONE has no value here; those that have: CWD, FIXTURE_DIR, SESSION"
        in report
    )


async def test_agent_that_does_not_read():
    report = await fails(prompt("silent"), {"raw": {"$repeat": ["x", 5_000_000]}}, timeout=1.0, grace=0.1)
    assert "talk.jsonl:6: the agent did not read 5,000,000 bytes within 1 s" in report


async def test_agent_that_cannot_start():
    report = outcome_text(await run({"send": {}}, command=("/no/such/agent",)))
    assert report.startswith("FAIL talk.jsonl:1: the agent '/no/such/agent' cannot be started: No such file")


async def test_agent_that_fails_at_once_shows_its_stderr():
    outcome = await run({"expect": {"id": 1}}, command=(*COMMAND, "--fault", "x"))
    report = outcome_text(outcome)
    assert "the agent's stdout is at its end (it ended with status 3)" in report
    assert report.endswith("  the agent's stderr, its end:\n    no licence")


async def test_large_values_are_shortened():
    report = await fails(
        prompt("large 1000000"), {"expect": {"params": {"update": {"content": {"text": "y"}}}}}
    )
    assert len(report) < 6000
    assert " … " in report
    assert "(1,000,1" in report


async def test_success_is_one_line():
    assert re.fullmatch(r"ok talk\.jsonl \(4 steps, \d+\.\d\d s\)", outcome_text(await passes()))


# ----------------------------------------------------------------------- the command


def script(*arguments, cwd):
    command = [sys.executable, "-m", "acp_server", "script", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.fixture
def folder(tmp_path):
    def write(name, *lines):
        (tmp_path / name).write_text("\n".join(json.dumps(line) for line in lines))

    write("good.jsonl", *OPEN)
    write("bad.jsonl", *OPEN, {"expect": {"id": 9}, "timeout": 0.1})
    write(
        "env.jsonl", *OPEN, prompt("environment K"), {"until": DONE["expect"]}, {"text": {"$regex": "^v=w "}}
    )
    (tmp_path / "broken.jsonl").write_text("nonsense\n")
    (tmp_path / "latin.jsonl").write_bytes(b"\xff\n")
    return tmp_path


def test_command_passes(folder):
    done = script("good.jsonl", "--timeout", "20", "good.jsonl", "--", *COMMAND, cwd=folder)
    assert done.stderr == ""
    assert re.fullmatch(r"(ok good\.jsonl \(4 steps, .* s\)\n){2}2 passed, 0 failed\n", done.stdout)
    assert done.returncode == 0


def test_command_reports_each_and_fails(folder):
    done = script("--timeout=20", "good.jsonl", "bad.jsonl", "broken.jsonl", "latin.jsonl", "none.jsonl",
                  "--", *COMMAND, cwd=folder)  # fmt: skip
    assert done.returncode == 1
    heads = [line.split(":")[0] for line in done.stdout.split("\n") if line[:2] in ("ok", "FA")]
    assert [head.split(" (")[0] for head in heads] == [
        "ok good.jsonl", "FAIL bad.jsonl", "FAIL broken.jsonl", "FAIL latin.jsonl", "FAIL none.jsonl",
    ]  # fmt: skip
    assert done.stdout.endswith("\n1 passed, 4 failed\n")


def test_command_options(folder):
    done = script("env.jsonl", "--env", "K=v=w", "--cwd", ".", "--verbose", "--", *COMMAND, cwd=folder)
    assert done.returncode == 0, done.stdout
    assert f'"cwd":"{folder}"' in done.stdout
    assert '-> {"jsonrpc":"2.0","id":1,"method":"initialize"' in done.stdout


def test_command_takes_a_folder(folder):
    for name in ("bad", "env", "broken", "latin"):
        (folder / f"{name}.jsonl").unlink()
    done = script(".", "--", *COMMAND, cwd=folder)
    assert done.stdout.endswith("\n1 passed, 0 failed\n")


def test_interrupted(folder):
    """Ctrl-C ends the command and the agent, without a traceback."""
    text = "\n".join(json.dumps(line) for line in (*OPEN, {"none": "$any", "for": 600}))
    (folder / "long.jsonl").write_text(text)
    command = [sys.executable, "-m", "acp_server", "script", "long.jsonl", "--verbose", "--", *COMMAND]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert any(line.startswith("-- long.jsonl:5") for line in child.stdout)
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate(timeout=60)
    assert (child.returncode, stderr) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "name at least one fixture"),
        (("--", "agent"), 2, "name at least one fixture"),
        (("good.jsonl", "--nope"), 2, "unrecognized arguments: --nope"),
        (("good.jsonl", "--timeout", "0"), 2, "'0' is not a number of seconds above 0"),
        (("--timeout", "soon", "good.jsonl"), 2, "'soon' is not a number of seconds above 0"),
        (("good.jsonl", "--env", "K"), 2, "'K' is not KEY=VALUE"),
        (("good.jsonl", "--cwd", "none"), 1, "none: there is no such folder"),
    ],
)
def test_wrong_command_line(folder, arguments, status, said):
    done = script(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
