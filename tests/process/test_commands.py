"""The commands as a person or a script calls them: `run`, `demo`, and command lines that are wrong."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.process.homes import Home, call, calls, says
from tests.support.wire_order import Json

MODULE = [sys.executable, "-m", "acp_server"]


def wholeturn(home: Home, *arguments: str, stdin: str = "", cwd: Path | None = None) -> "Done":
    """Run a command to its end."""
    done = subprocess.run(
        [*MODULE, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd or home.work,
        env=home.env,
        timeout=60,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


Done = subprocess.CompletedProcess[str]


@pytest.fixture
def reading(home: Home) -> Home:
    """A model that reads a file, then answers."""
    (home.work / "a.txt").write_text("seven")
    home.script(calls(call("read_file", path="a.txt")), says(["It says ", "seven."]))
    return home


def test_run_prints_the_answer_alone_on_stdout(reading: Home) -> None:
    done = wholeturn(reading, "run", "What does a.txt say?")
    assert (done.returncode, done.stdout) == (0, "It says seven.\n")
    assert "Read a.txt: completed" in done.stderr


def test_run_as_json_is_one_object(reading: Home) -> None:
    done = wholeturn(reading, "run", "--output", "json", "What does a.txt say?")
    assert done.returncode == 0
    result: Json = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert (result["text"], result["stopReason"]) == ("It says seven.", "end_turn")
    assert result["toolCalls"] == [{"title": "Read a.txt", "status": "completed"}]
    assert result["historyTrimmed"] == []
    assert result["usage"]["size"] > result["usage"]["used"] > 0
    assert result["sessionId"].startswith("sess_")


def test_run_reads_the_prompt_from_stdin_and_works_in_another_folder(reading: Home) -> None:
    done = wholeturn(reading, "run", "--cwd", str(reading.work), "-", stdin="Read it\n", cwd=reading.spawn)
    assert (done.returncode, done.stdout) == (0, "It says seven.\n")


def test_run_tells_a_trim_on_stderr_and_in_its_json(home: Home) -> None:
    """Within one turn nothing but tool results can be shortened, where the profile says so."""
    (home.work / "big.txt").write_text("filler line\n" * 3000)
    home.configure(profile='max_context_tokens = 3000\nrunning_turn_overflow = "shorten"')
    home.script(*[calls(call("read_file", path="big.txt", limit=700))] * 4, says("done"))
    home.configure(_windowed(home))
    done = wholeturn(home, "run", "--output", "json", "Read it often.")
    result: Json = json.loads(done.stdout)
    assert (done.returncode, result["text"]) == (0, "done")
    assert result["historyTrimmed"]
    assert result["historyTrimmed"][0]["reason"] == "running turn shortened to fit"
    again = wholeturn(home, "run", "Read it often.")
    assert "history trimmed" in again.stderr
    assert again.stdout == "done\n"


def _windowed(home: Home) -> str:
    script = json.dumps(str(home.root / "script.json"))
    return f'kind = "scripted"\nmodel = "scripted"\ncontext_window = 6000\nscript = {script}'


def test_run_with_a_model_that_fails_says_so_and_exits_1(home: Home) -> None:
    home.script({"error": {"status": 401}})
    done = wholeturn(home, "run", "hi")
    assert done.returncode == 1
    assert "key" in done.stdout
    result: Json = json.loads(wholeturn(home, "run", "--output", "json", "hi").stdout)
    assert result["error"] in result["text"]


def test_run_without_a_model_says_what_to_set(home: Home) -> None:
    (home.root / "config" / "config.toml").unlink()
    done = wholeturn(home, "run", "hi")
    assert done.returncode == 1, "a script must not take the advice for an answer"
    assert "No model is configured" in done.stdout
    assert "config.toml" in done.stdout


WRONG = [
    (["dmeo"], 2, "dmeo"),
    (["run"], 2, "prompt"),
    (["--no-such-flag"], 2, "--no-such-flag"),
    (["run", "--output", "xml", "hi"], 2, "xml"),
    (["run", ""], 1, "empty"),
    (["run", "--cwd", "/no/such/folder", "hi"], 1, "/no/such/folder"),
    (["run", "--config", "/no/such/file.toml", "hi"], 1, "/no/such/file.toml"),
    (["run", "--set", "agents.default.modle=x", "hi"], 1, "modle"),
]


@pytest.mark.parametrize(("arguments", "status", "told"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_a_wrong_command_line_is_told_on_stderr(
    home: Home, arguments: list[str], status: int, told: str
) -> None:
    done = wholeturn(home, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert told in done.stderr


def test_version_and_help(home: Home) -> None:
    assert wholeturn(home, "--version").stdout.startswith("wholeturn ")
    help_text = wholeturn(home, "--help").stdout
    assert all(word in help_text for word in ("run", "demo", "config", "trust"))


def test_demo_plays_to_its_end_in_a_plain_terminal(home: Home) -> None:
    """Over the files of the folder: trims as the client sees them, a kill, a load, and the table."""
    for number in range(6):
        text = f"# Chapter {number} of the manual\n" + f"line of chapter {number}, some more words\n" * 80
        (home.work / f"chapter{number}.md").write_text(text)
    started = time.monotonic()
    done = wholeturn(home, "demo")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-3000:]
    assert time.monotonic() - started < 40  # 20 s alone on a machine
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout
    assert done.stdout.count("history_trimmed:") >= 2
    assert "kill -9" in done.stdout
    assert "[completed] Read chapter" in done.stdout
    assert any(line.startswith("turn  prompt") for line in lines)


def test_demo_without_files_to_read_takes_its_own(home: Home) -> None:
    done = wholeturn(home, "demo")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "no text files to read here" in done.stdout
