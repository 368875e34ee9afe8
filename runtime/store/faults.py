"""Names what can be wrong with a store file, and says it in a sentence. Knows no SQL and no session."""

import errno
from enum import StrEnum
from pathlib import Path

from runtime.errors import InvalidParams, ResourceNotFound, StoreError


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
