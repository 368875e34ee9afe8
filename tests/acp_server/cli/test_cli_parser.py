"""Slips on the command line: the command that they were made on says so, and what was probably meant."""

import pytest

from acp_server.cli.main import run

SLIPS = [
    ("dotcor", "wholeturn: error: ", '; did you mean "doctor"?'),
    ("sessions lst", "wholeturn sessions: error: ", '; did you mean "list"?'),
    ("editors zedd", "wholeturn editors: error: ", '; did you mean "zed"?'),
    ("--vesrion", "wholeturn: error: ", '; did you mean "--version"?'),
    ("gateway --prot 1", "wholeturn gateway: error: ", '; did you mean "--port"?'),
    ("sessions list --limt 3", "wholeturn sessions list: error: ", '; did you mean "--limit"?'),
    ("doctor extra", "wholeturn doctor: error: ", "; `wholeturn doctor --help` tells more"),
    ("gateway --port 65536", "wholeturn gateway: error: ", "no port: 0 to 65535;"),
    ("gateway --port x", "wholeturn gateway: error: ", "'x' is no port"),
    ("doctor --timeout 0", "wholeturn doctor: error: ", "'0' is no number of seconds"),
    ("doctor --timeout nan", "wholeturn doctor: error: ", "'nan' is no number of seconds"),
]


@pytest.mark.parametrize(("words", "who", "said"), SLIPS)
def test_a_slip_is_told_where_it_was_made(
    words: str, who: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(words.split())
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(who)
    assert said in last


def test_help_keeps_its_capitals(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["gateway", "--help"])
    assert "Serve many clients over HTTP and WebSocket, with a dashboard." in capsys.readouterr().out


def test_a_folder_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--offline", "--cwd", "/no/such/folder"]) == 1
    assert capsys.readouterr().err == "wholeturn: --cwd: /no/such/folder is no folder.\n"
