"""What commands print of what others wrote: nothing that a terminal obeys, one line where one is meant."""

import pytest

from acp_server.cli.output import harmless, say
from acp_server.cli.stored_sessions import LONGEST_TITLE, line_of
from runtime.values.stored import SessionRecord

TIME = "2026-01-01T00:00:00.000Z"


def test_control_characters_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\x1b]0;owned\x07\x9b31m\r\tb\nc")
    assert capsys.readouterr().out == "a\ufffd]0;owned\ufffd\ufffd31m\ufffd\tb\nc\n"


def test_other_text_is_printed_as_it_is() -> None:
    assert harmless("häß 漢字 🙂\n\tx") == "häß 漢字 🙂\n\tx"


def test_a_session_is_one_line_of_fair_length() -> None:
    line = line_of(SessionRecord("s", "/p", TIME, TIME, "first\nsecond\u2028third" + "t" * 10_000))
    assert line.startswith("s  2026-01-01 00:00  first second third")
    assert len(line) < LONGEST_TITLE + 50
