"""What can be wrong with a store, in sentences; places in the session list; addresses of database servers.

The list's order is newest change first, then session id downwards; a cursor holds the last row's place, so
sessions that come, go or move never shift the pages behind it. An address is shown without its password.
Knows no SQL, no driver and no session.
"""

import errno
import re
from enum import StrEnum
from pathlib import Path

from runtime.values.errors import InvalidParams, ResourceNotFound, StoreError
from runtime.values.stored import SessionRecord


class TroubleKind(StrEnum):
    """Why a store cannot do what was asked, although the request was fine."""

    LOCKED = "locked"
    FULL = "full"
    READ_ONLY = "read_only"
    CORRUPT = "corrupt"
    NEWER = "newer"
    FOREIGN = "foreign"
    UNREACHABLE = "unreachable"
    STALLED = "stalled"
    FAILED = "failed"


_SENTENCES = {
    TroubleKind.LOCKED: "The session store {path} is locked by another program.",
    TroubleKind.FULL: "The session store {path} cannot grow: the disk is full.",
    TroubleKind.READ_ONLY: "The session store {path} cannot be written: no permission, or a read-only disk.",
    TroubleKind.CORRUPT: "The session store {path} is damaged.",
    TroubleKind.NEWER: "The session store {path} was written by a newer version of Wholeturn.",
    TroubleKind.FOREIGN: "The file {path} is a text or another program's; it was left as it is.",
    TroubleKind.UNREACHABLE: "The session store {path} cannot be opened.",
    TroubleKind.STALLED: "The session store {path} stands still: what was to be written is not on the disk.",
    TroubleKind.FAILED: "The session store {path} failed.",
}

# SQLite primary result codes, https://sqlite.org/rescode.html; by number, so that this module stays
# free of the sqlite3 import.
_BY_SQLITE_CODE = {
    3: TroubleKind.READ_ONLY,  # SQLITE_PERM
    5: TroubleKind.LOCKED,  # SQLITE_BUSY
    6: TroubleKind.LOCKED,  # SQLITE_LOCKED
    8: TroubleKind.READ_ONLY,  # SQLITE_READONLY
    11: TroubleKind.CORRUPT,  # SQLITE_CORRUPT
    13: TroubleKind.FULL,  # SQLITE_FULL
    14: TroubleKind.UNREACHABLE,  # SQLITE_CANTOPEN
    26: TroubleKind.CORRUPT,  # SQLITE_NOTADB
}

_BY_ERRNO = {
    errno.EACCES: TroubleKind.READ_ONLY,
    errno.EPERM: TroubleKind.READ_ONLY,
    errno.EROFS: TroubleKind.READ_ONLY,
    errno.ENOSPC: TroubleKind.FULL,
    errno.EDQUOT: TroubleKind.FULL,
}


class StoreTrouble(StoreError):
    """The store itself is in trouble: the same request may work later. `kind` tells why.

    path: the file, or a server's address as it may be shown.
    Every other StoreError is a request that can never work (an id that is taken, a closed store).
    """

    def __init__(self, kind: TroubleKind, path: Path | str, detail: str = "") -> None:
        sentence = _SENTENCES[kind].format(path=path)
        super().__init__(f"{sentence} ({detail})" if detail else sentence, data={"kind": kind.value})
        self.kind = kind


def from_sqlite(error: Exception, path: Path) -> StoreTrouble:
    """The trouble behind an error of the sqlite3 module."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return StoreTrouble(_BY_SQLITE_CODE.get(code, TroubleKind.FAILED), path, str(error))


def from_os(error: OSError, path: Path) -> StoreTrouble:
    """The trouble behind an error of the operating system."""
    kind = _BY_ERRNO.get(error.errno or 0, TroubleKind.UNREACHABLE)
    return StoreTrouble(kind, path, error.strerror or "")


def closed() -> StoreError:
    """The refusal of any call after `aclose`."""
    return StoreError("the session store is closed")


def id_taken(session_id: str) -> StoreError:
    """The refusal of a second session under one id."""
    return StoreError(f"the session {session_id!r} exists already")


def fork_taken(session_id: str) -> InvalidParams:
    """The refusal of a copy under an id that is in use."""
    return InvalidParams(f"the session {session_id!r} exists already")


def no_source(session_id: str) -> ResourceNotFound:
    """The refusal to copy a session that is not there."""
    return ResourceNotFound(f"There is no session {session_id[:80]!r}.", data={"sessionId": session_id})


def no_session(session_id: str) -> StoreError:
    """The refusal to write to a session that was never created."""
    return StoreError(f"the session {session_id!r} is not in the store")


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


SCHEMES = ("postgresql://", "postgres://")
VARIABLES = ("WHOLETURN_STORE", "PGPASSWORD", "PGPASSFILE")
"""Variables that a password for the server may stand in: no business of any program that we start."""

_HIDDEN = "***"
# Compiled at their first use: every start of the server imports this module.
# To the last @: a password that should have been written with %40 is hidden as well.
_PASSWORD = r"(?s)(?<=://)([^:@/?]*):(.*)@"
_BREAKS = r"[@/:?#]|%[0-9A-Fa-f]{2}"
_TELLING = r"(?i)([?&][^=&]*(?:passw|secret|key)[^=&]*)=([^&]*)"


def is_address(store: str) -> bool:
    """Whether the setting `store` names a server that we can talk to."""
    return store.startswith(SCHEMES)


def masked(address: str) -> str:
    """The address fit to be shown."""
    return re.sub(_TELLING, rf"\1={_HIDDEN}", re.sub(_PASSWORD, rf"\1:{_HIDDEN}@", address))


def scrubbed(text: str, address: str) -> str:
    """A driver's text without what `masked` hides of the address."""
    secrets = [found[1] for found in (*re.findall(_PASSWORD, address), *re.findall(_TELLING, address))]
    # A driver that misreads an address may show any part of it: a password with an @ in it as the host.
    parts = {part for secret in secrets for part in (secret, *re.split(_BREAKS, secret)) if len(part) > 2}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, _HIDDEN)
    return text


def text(cell: object) -> str:
    """A cell of a column of text, as far as it can be read."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return cell if isinstance(cell, str) else "" if cell is None else str(cell)
