"""`wholeturn run` as a script calls it: a stream of events, limits, a reply that fits a schema, statuses."""

import json
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.process.homes import Home, call, calls, says
from tests.process.test_commands import MODULE, wholeturn
from tests.support.wire_order import Json

SCHEMA = Path(__file__).parents[2] / "schemas" / "run_stream.schema.json"
NUMBERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def numbers(home: Home) -> str:
    """A file with a schema for replies."""
    path = home.root / "numbers.json"
    path.write_text(json.dumps(NUMBERS))
    return str(path)


def test_events_come_as_lines_that_fit_the_published_schema(home: Home) -> None:
    (home.work / "a.txt").write_text("seven")
    home.script(calls(call("read_file", path="a.txt")), says("It says seven."))
    done = wholeturn(home, "run", "--output", "stream-json", "What does it say?")
    lines: list[Json] = [json.loads(line) for line in done.stdout.splitlines()]
    validator = Draft202012Validator(json.loads(SCHEMA.read_text()))
    assert [error.message for line in lines for error in validator.iter_errors(line)] == []
    kinds = [line["type"] for line in lines]
    assert kinds.index("tool_call_started") < kinds.index("tool_call_changed") < kinds.index("agent_text")
    assert (kinds[-1], lines[-1]["text"], lines[-1]["stopReason"]) == ("result", "It says seven.", "end_turn")
    assert [line["event_id"] for line in lines[:-1]] == [str(n + 1) for n in range(len(lines) - 1)]
    assert done.returncode == 0


def test_an_event_is_written_before_the_turn_ends(home: Home) -> None:
    home.script({"text": "first", "hang": True})
    command = [*MODULE, "run", "--output", "stream-json", "go"]
    with subprocess.Popen(command, cwd=home.work, env=home.env, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        seen = next(line for line in running.stdout if '"agent_text"' in line)
        assert json.loads(seen)["text"] == "first"
        running.send_signal(2)
        rest = running.stdout.read().splitlines()
        assert json.loads(rest[-1])["stopReason"] == "cancelled"
    assert running.returncode == 130


def test_rounds_are_limited_by_a_flag(home: Home) -> None:
    (home.work / "a.txt").write_text("seven")
    home.script(*[calls(call("read_file", path="a.txt"))] * 5, says("never"))
    done = wholeturn(home, "run", "--max-turns", "2", "--output", "json", "Read it often.")
    result: Json = json.loads(done.stdout)
    assert (done.returncode, result["stopReason"], len(result["toolCalls"])) == (4, "max_turn_requests", 2)


@pytest.mark.parametrize(
    ("flag", "value", "says_why"), [("--max-turns", "0", "at least 1"), ("--allow", "*", "yolo")]
)
def test_a_wrong_flag_ends_with_2(home: Home, flag: str, value: str, says_why: str) -> None:
    done = wholeturn(home, "run", flag, value, "hi")
    assert (done.returncode, says_why in done.stderr) == (2, True)


def test_a_rule_allows_what_nobody_is_there_to_allow(home: Home) -> None:
    script = (calls(call("write_file", path="new.txt", content="x")), says("done"))
    home.script(*script)
    refused = wholeturn(home, "run", "Write it.")
    assert "not allowed" in refused.stderr
    assert not (home.work / "new.txt").exists()
    home.script(*script)
    allowed = wholeturn(home, "run", "--allow", "write_file:new.txt", "Write it.")
    assert (allowed.returncode, (home.work / "new.txt").read_text()) == (0, "x")


def test_a_deny_rule_wins_over_the_flag(home: Home) -> None:
    home.script(calls(call("write_file", path="new.txt", content="x")), says("done"))
    config = home.root / "config" / "config.toml"
    config.write_text(config.read_text() + '\n[permissions]\ndeny = ["write_file:new.txt"]\n')
    wholeturn(home, "run", "--allow", "write_file:new.txt", "Write it.")
    assert not (home.work / "new.txt").exists()


def test_a_reply_that_does_not_fit_is_asked_for_again(home: Home, numbers: str) -> None:
    home.script(says("seven"), says('{"n": "7"}'), says('```json\n{"n": 7}\n```'))
    done = wholeturn(home, "run", "--schema", numbers, "--output", "json", "Which number?")
    assert (done.returncode, json.loads(done.stdout)["value"]) == (0, {"n": 7})


def test_only_the_value_is_printed(home: Home, numbers: str) -> None:
    home.script(says("seven"), says('{"n": 7}'))
    done = wholeturn(home, "run", "--schema", numbers, "Which number?")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"n": 7})


def test_a_reply_that_never_fits_ends_with_6(home: Home, numbers: str) -> None:
    home.script(*[says('{"n": "7"}')] * 3, says('{"n": 7}'))
    done = wholeturn(home, "run", "--schema", numbers, "--output", "json", "Which number?")
    result: Json = json.loads(done.stdout)
    assert (done.returncode, result["stopReason"]) == (6, "schema")
    assert "$.n" in result["error"]


@pytest.mark.parametrize(("text", "says_why"), [("{", "no JSON"), ('{"type": "nothing"}', "no JSON schema")])
def test_a_schema_that_is_none_is_refused_before_anyone_is_asked(
    home: Home, text: str, says_why: str
) -> None:
    path = home.root / "bad.json"
    path.write_text(text)
    done = wholeturn(home, "run", "--schema", str(path), "hi")
    assert (done.returncode, says_why in done.stderr, done.stdout) == (1, True, "")


def test_a_reader_that_has_had_enough_is_no_fault(home: Home) -> None:
    home.script(says("a line\n" * 20_000))
    command = " ".join([*MODULE, "run", "go", "|", "head", "-n", "1"])
    done = subprocess.run(
        command, shell=True, cwd=home.work, env=home.env, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("a line\n", "")
