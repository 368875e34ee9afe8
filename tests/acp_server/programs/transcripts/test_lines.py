"""The export format: what is written is read back, and what is wrong is named with its line."""

from datetime import UTC, datetime

import orjson
import pytest

from acp_server.programs.transcripts.lines import (
    BadExport,
    header_line,
    is_readable,
    moment_before,
    read_header,
    read_step,
    step_line,
)
from runtime.values.errors import WholeturnError
from runtime.values.stored import SessionRecord, StoredEntry

RECORD = SessionRecord("s", "/project", "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z", "A title")
PROMPT = b'{"kind":"prompt","message_id":"m","text":"h\xc3\xa9","blocks":[]}'
NESTED = b'[{"type":"text","text":"a","_meta":{"a":%s%s}}]'
ENTRY = StoredEntry("t", "turn:t:prompt", "prompt", PROMPT, 3)


def header(**facts: object) -> bytes:
    return orjson.dumps(orjson.loads(header_line(RECORD, 1)) | facts)


def session(**facts: object) -> bytes:
    return header(session=orjson.loads(header_line(RECORD, 1))["session"] | facts)


def line(**facts: object) -> bytes:
    return orjson.dumps(orjson.loads(step_line(ENTRY)) | facts)


def test_a_header_is_read_as_it_was_written():
    read = read_header(header_line(RECORD, 7))
    assert (read.record, read.steps) == (RECORD, 7)


def test_a_step_is_read_as_it_was_written():
    assert read_step(step_line(ENTRY), 2) == StoredEntry("t", "turn:t:prompt", "prompt", PROMPT)
    assert step_line(ENTRY).count(b"\n") == 1


def test_a_kind_that_is_not_known_is_kept():
    other = StoredEntry("t", "k", "hologram", b'{"kind":"hologram","depth":3}')
    assert read_step(step_line(other), 2) == other


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (header(format="other"), "no exported session"),
        (header(version=2), "newer Wholeturn"),
        (header(version="1"), "not complete"),
        (header(steps=None), "not complete"),
        (header(session=[]), "not complete"),
        (session(sessionId=""), "sessionId"),
        (session(sessionId="x" * 501), "sessionId"),
        (session(sessionId="a\0b"), "sessionId"),
        (session(cwd="here"), "absolute"),
        (session(updatedAt=5), "updatedAt"),
        (session(updatedAt="zzz"), "ISO 8601"),
        (session(createdAt="2026-01-01T00:00:00"), "its zone"),
        (session(createdAt="0001-01-01T00:00:00+14:00"), "ISO 8601"),
        (session(sessionId="a\x1b]0;b"), "cannot be shown"),
        (session(state={"dropped_turns": "many"}), "state"),
    ],
)
def test_a_header_that_is_wrong(data: bytes, said: str):
    with pytest.raises(BadExport, match=f"^Line 1: .*{said}"):
        read_header(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"nope", "not JSON"),
        (line(key=""), "key"),
        (line(turn=1), "turn"),
        (line(kind="reply"), "not of the kind"),
        (line(step="x"), "not of the kind"),
        (line(step={"kind": "prompt"}), "prompt step cannot be read"),
    ],
)
def test_a_step_that_is_wrong(data: bytes, said: str):
    with pytest.raises(BadExport, match=f"^Line 9: .*{said}"):
        read_step(data, 9)


@pytest.mark.parametrize(
    ("kind", "payload", "readable"),
    [
        ("prompt", b"\0\0", False),
        ("prompt", b'{"kind":"prompt"}', False),
        ("prompt", b'{"kind":"end","outcome":"done","stop_reason":""}', False),
        ("end", b'{"kind":"end","outcome":"done","stop_reason":""}', True),
        ("later", b"\xff", False),
        ("later", b"[]", False),
        ("later", b'{"kind":"later","x":1}', True),
    ],
)
def test_a_stored_step_that_is_damaged_is_known(kind: str, payload: bytes, readable: bool):
    assert is_readable(StoredEntry("t", "k", kind, payload)) is readable


NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age", "moment"),
    [
        ("12h", "2026-02-28T12:00:00.000Z"),
        ("30d", "2026-01-30T00:00:00.000Z"),
        ("2w", "2026-02-15T00:00:00.000Z"),
        ("999999w", "0001-01-01T00:00:00.000Z"),
    ],
)
def test_an_age_is_a_moment(age: str, moment: str):
    assert moment_before(age, NOW) == moment


@pytest.mark.parametrize("age", ["", "30", "d", "-1d", "1.5d", "3 days", "1d 2h"])
def test_what_is_no_age(age: str):
    with pytest.raises(WholeturnError, match="is no age"):
        moment_before(age)


def test_times_are_taken_in_as_they_are_stored_here():
    read = read_header(session(updatedAt="2026-01-02T02:00:00.5+02:00"))
    assert read.record.updated_at == "2026-01-02T00:00:00.500Z"


def test_what_was_permitted_elsewhere_is_not_permitted_here():
    read = read_header(session(state={"mode": "yolo", "profile": "tight", "notes": "n" * 60_000}))
    state = orjson.loads(read.record.state)
    assert (state["mode"], state["profile"], state["notes"]) == ("", "tight", "")


def test_a_title_from_elsewhere_is_no_longer_than_a_name():
    title = read_header(session(title="t" * 10_000)).record.title
    assert title == "t" * 500


def test_a_damaged_state_does_not_spoil_the_export():
    damaged = RECORD._replace(state='{"version": 2, "dro')
    assert read_header(header_line(damaged, 1)).record == RECORD


def test_a_step_that_could_not_be_shown_again_is_refused():
    fine, deep = (
        line(step=None).replace(b"null", PROMPT.replace(b"[]", NESTED % (b"[" * n, b"]" * n)))
        for n in (99, 300)
    )
    assert read_step(fine, 2).kind == "prompt"
    with pytest.raises(BadExport, match="Line 2: nested deeper than 100 levels"):
        read_step(deep, 2)
