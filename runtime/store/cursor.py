"""The opaque cursor of a session list: a place in the order, not a row number. Knows no store.

The order is newest change first, then session id downwards; a cursor holds the last row's place, so
sessions that come, go or move never shift the pages behind it.
"""

from runtime.errors import InvalidParams
from runtime.stored import SessionRecord

_PREFIX = "s1-"
_SEPARATOR = "\x1f"

Place = tuple[str, str]
"""(updated_at, session_id): the sort key, compared downwards."""


def place_of(record: SessionRecord) -> Place:
    """Where a session stands in the list."""
    return record.updated_at, record.session_id


def encode(record: SessionRecord) -> str:
    """The cursor that continues after this session."""
    return _PREFIX + _SEPARATOR.join(place_of(record)).encode().hex()


def decode(cursor: str | None) -> Place | None:
    """The place to continue after; None without a cursor. Raises InvalidParams on a foreign one."""
    if cursor is None:
        return None
    try:
        updated_at, session_id = bytes.fromhex(cursor.removeprefix(_PREFIX)).decode().split(_SEPARATOR, 1)
    except ValueError:
        updated_at = session_id = ""
    if not (cursor.startswith(_PREFIX) and updated_at and session_id):
        raise InvalidParams("the cursor is not one that this agent gave")
    return updated_at, session_id
