"""The lines of an exported session, to values and back, and ages such as `30d`. Pure.

The README has the format.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from runtime.values.errors import WholeturnError
from runtime.values.ids_and_time import utc_text
from runtime.values.stored import SessionRecord, StoredEntry
from schemas.acp.fields import is_absolute
from schemas.base import MAX_DEPTH, is_shallow
from schemas.transcript import ANY_STEP, KINDS, SessionState

FORMAT = "wholeturn-session"
VERSION = 1
LONGEST_LINE = 256 * 1024 * 1024
LONGEST_NAME = 500
"""Characters of an id or key."""

LONGEST_NOTES = 50_000
OUR_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
OUR_LEVELS = 5
"""Of objects and lists of a step itself, around what a client or a model made."""


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
        "state": stored_state(record),
    }
    head = {"format": FORMAT, "version": VERSION, "steps": steps, "session": session}
    return orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE)


def stored_state(record: SessionRecord) -> object:
    """A session's state; an empty one in the place of one that is damaged."""
    try:
        return orjson.loads(record.state or "{}")
    except ValueError:
        return {}


def is_readable(entry: StoredEntry) -> bool:
    """Whether a stored step can be read: as one of its kind, or as any object if that is not known here."""
    try:
        if entry.kind in KINDS:
            ANY_STEP.validate_json(entry.payload)
        step = orjson.loads(entry.payload)
    except ValueError:
        return False
    return isinstance(step, dict) and step.get("kind") == entry.kind


def step_line(entry: StoredEntry) -> bytes:
    """The line of a readable step."""
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
        cut = here(SessionState.model_validate(state)).model_dump_json() if state else "{}"
    except ValueError:
        raise BadExport("Line 1: the session's state cannot be read.") from None
    title = session.get("title")
    record = SessionRecord(
        _session_id(session),
        _name(session, "cwd", 1, 4096),
        _moment(session, "createdAt"),
        _moment(session, "updatedAt"),
        title[:LONGEST_NAME] if isinstance(title, str) else None,
        cut,
    )
    if not is_absolute(record.cwd):
        raise BadExport("Line 1: cwd is not an absolute path.")
    return Header(record, steps)


def here(state: SessionState) -> SessionState:
    """The state without what was permitted elsewhere: what runs unasked is decided where it runs.

    Notes that no summary could have made are left out: they go into every request.
    """
    notes = state.notes if len(state.notes) <= LONGEST_NOTES else ""
    return state.model_copy(update={"mode": "", "notes": notes})


def read_step(line: bytes, number: int) -> StoredEntry:
    """A step. Raises BadExport, naming the line."""
    found = _object(line, number)
    turn, key, kind = (_name(found, name, number) for name in ("turn", "key", "kind"))
    step = found.get("step")
    if not isinstance(step, dict) or step.get("kind") != kind:
        raise BadExport(f"Line {number}: step is not of the kind {kind!r}.")
    if not is_shallow(step, MAX_DEPTH + OUR_LEVELS):
        raise BadExport(f"Line {number}: nested deeper than {MAX_DEPTH} levels.")
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


def _moment(found: dict[str, object], key: str) -> str:
    """A time as it is stored, UTC. The list of sessions is ordered by it, as text."""
    text = _name(found, key, 1)
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return text if OUR_TIME.fullmatch(text) else utc_text(time.astimezone(UTC))
    except (ValueError, OverflowError):
        pass
    raise BadExport(f"Line 1: {key} must be a time in ISO 8601 with its zone.")


def _session_id(session: dict[str, object]) -> str:
    name = _name(session, "sessionId", 1)
    if not name.isprintable():
        raise BadExport("Line 1: sessionId has characters that cannot be shown.")
    return name


def _name(found: dict[str, object], key: str, number: int, limit: int = LONGEST_NAME) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= limit or "\0" in value:
        raise BadExport(f"Line {number}: {key} must be a text of 1 to {limit} characters.")
    return value


_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"(\d{1,6})([hdw])")


def moment_before(age: str, now: datetime | None = None) -> str:
    """The moment that long ago, ISO 8601 UTC with milliseconds. Raises WholeturnError for what is no age."""
    found = _AGE.fullmatch(age.strip())
    if found is None:
        raise WholeturnError(f"{age[:40]!r} is no age: write 12h, 30d or 8w.")
    try:
        then = (now or datetime.now(UTC)) - timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        return "0001-01-01T00:00:00.000Z"
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
