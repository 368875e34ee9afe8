"""Python, the command, helpers, the terminal, a start of the server: right and wrong."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from acp_server.doctor import machine as checks
from acp_server.doctor.finding import Place
from tests.acp_server.doctor.rigs import Machine, only, rows


@pytest.mark.parametrize(("version", "status"), [((3, 10, 9), "bad"), ((3, 11, 0), "ok"), ((3, 14, 1), "ok")])
def test_python(version: tuple[int, ...], status: str):
    found = only(checks.check_python(version), "python")
    assert found.status == status
    assert ".".join(map(str, version)) in found.text


def test_the_command_on_path_is_this_one(machine: Machine):
    (machine.root / "bin" / "wholeturn").symlink_to(Path(sys.executable).with_name("wholeturn"))
    assert only(checks.check_command(machine.place), "command").status == "ok"


def test_the_command_is_not_on_path(machine: Machine):
    found = only(checks.check_command(machine.place), "command")
    assert found.status == "note"
    assert "editors" in found.mend


def test_another_installation_is_on_path(machine: Machine):
    other = machine.program("wholeturn")
    found = only(checks.check_command(machine.place), "command")
    assert found.status == "note"
    assert str(other) in found.text


def test_helpers(machine: Machine):
    assert rows(checks.check_helpers(machine.place)) == [("search", "note"), ("git", "note")]
    machine.program("rg")
    machine.program("git")
    assert rows(checks.check_helpers(machine.place)) == [("search", "ok"), ("git", "ok")]


@pytest.mark.parametrize(
    ("encoding", "status"), [("utf-8", "ok"), ("UTF8", "ok"), ("ascii", "note"), ("latin-1", "note")]
)
def test_terminal(machine: Machine, encoding: str, status: str):
    place = replace(machine.place, encoding=encoding)
    assert only(checks.check_terminal(place), "terminal").status == status


def start(machine: Machine, program: str, patience: float = 20.0) -> str:
    """The status and text for a server that is this program."""
    command = (sys.executable, "-c", program)
    found = only(checks.check_start(machine.place, command, patience), "start")
    return f"{found.status}: {found.text}"


def test_a_start_is_timed(machine: Machine):
    found = only(checks.check_start(machine.place), "start")
    assert found.status in ("ok", "note")
    assert "answered in" in found.text


ANSWER = '{"jsonrpc":"2.0","id":0,"result":{"agentInfo":{"version":"9.9.9"}}}'


def test_a_start_of_any_server(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    assert "version 9.9.9" in start(machine, f"input(); print('''{ANSWER}''', flush=True); input()")
    monkeypatch.setattr(checks, "SLOW_START", 0.0)
    assert start(machine, f"input(); print('''{ANSWER}''')").startswith("note: ")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("raise SystemExit(3)", "does not answer `initialize`."),
        ("raise SystemExit('no licence')", 'does not answer `initialize`; it said "no licence".'),
        (
            "import os, sys, time; os.close(1); time.sleep(0.2); sys.exit('late\\x1b words')",
            'it said "late? words".',
        ),
        ("input(); print('hello')", "does not answer"),
        ("input(); print('{\"result\": 5}')", "does not answer"),
    ],
)
def test_a_start_that_fails(machine: Machine, program: str, told: str):
    assert start(machine, program).startswith("bad: ")
    assert told in start(machine, program)


def test_a_server_that_is_silent_is_given_up(machine: Machine):
    assert "within" in start(machine, "import time; time.sleep(60)", 0.3)
    busy = "import sys, time; print('loading', file=sys.stderr, flush=True); time.sleep(60)"
    assert start(machine, busy, 2.0).endswith(' s; it said "loading".')


def test_a_server_that_is_not_there(machine: Machine):
    found = only(checks.check_start(machine.place, (str(machine.root / "none"),)), "start")
    assert (found.status, "cannot be started" in found.text) == ("bad", True)


def test_a_folder_cannot_slip_modules_into_the_start(machine: Machine):
    planted = machine.root / "work" / "acp_server"
    planted.mkdir()
    (planted / "__init__.py").write_text("")
    (planted / "__main__.py").write_text("open('ran', 'w')")
    assert only(checks.check_start(machine.place), "start").status in ("ok", "note")
    assert not (machine.root / "work" / "ran").exists()


def test_no_path_at_all_is_no_fault(machine: Machine):
    assert Place({}, machine.root).program("surely-not-there") is None
