"""The lines of an exported session, to values and back. Pure; the README has the format."""

from dataclasses import dataclass
from typing import get_args

import orjson

from runtime.errors import WholeturnError
from runtime.stored import SessionRecord, StoredEntry
from schemas.acp.paths import is_absolute
from schemas.transcript import ANY_STEP, AnyStep, SessionState

FORMAT = "wholeturn-session"
VERSION = 1
LONGEST_LINE = 256 * 1024 * 1024
LONGEST_NAME = 500
"""Characters of an id or key."""

KINDS = frozenset(
    get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(AnyStep)[0])
)
"""The kinds of steps that this version knows."""


class BadExport(WholeturnError):
    """A file that is no exported session; the message names the line."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line. steps: how many lines follow."""

    record: SessionRecord
    steps: int


def header_line(record: SessionRecord, steps: int) -> bytes:
    """The first line of an export."""
    session = {
        "sessionId": record.session_id,
        "cwd": record.cwd,
        "title": record.title,
        "createdAt": record.created_at,
        "updatedAt": record.updated_at,
        "state": orjson.Fragment((record.state or "{}").encode()),
    }
    head = {"format": FORMAT, "version": VERSION, "steps": steps, "session": session}
    return orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE)


def step_line(entry: StoredEntry) -> bytes:
    """The line of a step. Raises BadExport for one whose stored bytes are no JSON."""
    try:
        orjson.loads(entry.payload)
    except ValueError:
        raise BadExport(f"The stored step {entry.key} is damaged.") from None
    line = {
        "turn": entry.turn_id,
        "key": entry.key,
        "kind": entry.kind,
        "step": orjson.Fragment(entry.payload),
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def read_header(line: bytes) -> Header:
    """The header of a file. Raises BadExport."""
    found = _object(line, 1)
    if found.get("format") != FORMAT:
        raise BadExport("Line 1: this is no exported session.")
    version, steps, session = found.get("version"), found.get("steps"), found.get("session")
    if type(version) is int and version > VERSION:
        raise BadExport(
            f"Line 1: made by a newer Wholeturn (format {version}, this one reads up to {VERSION})."
        )
    if version != VERSION or type(steps) is not int or not isinstance(session, dict):
        raise BadExport("Line 1: the header is not complete.")
    state = session.get("state", {})
    try:
        cut = SessionState.model_validate(state).model_dump_json() if state else "{}"
    except ValueError:
        raise BadExport("Line 1: the session's state cannot be read.") from None
    title = session.get("title")
    record = SessionRecord(
        _name(session, "sessionId", 1),
        _name(session, "cwd", 1, 4096),
        _name(session, "createdAt", 1),
        _name(session, "updatedAt", 1),
        title if isinstance(title, str) else None,
        cut,
    )
    if not is_absolute(record.cwd):
        raise BadExport("Line 1: cwd is not an absolute path.")
    return Header(record, steps)


def read_step(line: bytes, number: int) -> StoredEntry:
    """A step. Raises BadExport, naming the line."""
    found = _object(line, number)
    turn, key, kind = (_name(found, name, number) for name in ("turn", "key", "kind"))
    step = found.get("step")
    if not isinstance(step, dict) or step.get("kind") != kind:
        raise BadExport(f"Line {number}: step is not of the kind {kind!r}.")
    if kind in KINDS:
        try:
            ANY_STEP.validate_python(step)
        except ValueError:
            raise BadExport(f"Line {number}: the {kind} step cannot be read.") from None
    return StoredEntry(turn, key, kind, orjson.dumps(step))


def _object(line: bytes, number: int) -> dict[str, object]:
    try:
        found = orjson.loads(line)
    except ValueError:
        raise BadExport(f"Line {number}: not JSON.") from None
    if not isinstance(found, dict):
        raise BadExport(f"Line {number}: not a JSON object.")
    return found


def _name(found: dict[str, object], key: str, number: int, limit: int = LONGEST_NAME) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= limit or "\0" in value:
        raise BadExport(f"Line {number}: {key} must be a text of 1 to {limit} characters.")
    return value
