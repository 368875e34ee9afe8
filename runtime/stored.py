"""The store's port and its values: sessions' heads and the entries of their transcripts. Knows no store.

Apart from `runtime.ports`, because `session/new` needs this and nothing else of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session's head. Times are ISO 8601 UTC. state: small JSON object owned by the session (its cut)."""

    session_id: str
    cwd: str
    created_at: str
    updated_at: str
    title: str | None = None
    state: str = "{}"


class HeadChange(NamedTuple):
    """A change of a session's head; None leaves a field as it is. updated_at: ISO 8601 UTC."""

    updated_at: str | None = None
    title: str | None = None
    state: str | None = None


UNCHANGED = HeadChange()


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One line of a transcript. key: the durable step's key, unique in the session. payload: JSON bytes.

    seq is given by the store: 1, 2, 3, … in a session; 0 before it was stored.
    """

    turn_id: str
    key: str
    kind: str
    payload: bytes
    seq: int = 0


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of sessions, newest change first. next_cursor: opaque, None on the last page."""

    sessions: tuple[SessionRecord, ...]
    next_cursor: str | None


class Store(Protocol):
    """Transcripts, append-only. What a method acknowledged survives kill -9. Raises StoreError."""

    async def create_session(self, record: SessionRecord) -> None:
        """A new session. The id must be free."""
        ...

    async def session(self, session_id: str) -> SessionRecord | None:
        """The session's head, or None."""
        ...

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        """Newest change first; `cwd` filters exactly. Raises InvalidParams on a cursor that is not ours."""
        ...

    async def append(
        self, session_id: str, entries: Sequence[StoredEntry], *, head: HeadChange = UNCHANGED
    ) -> None:
        """Commit entries (and the head's change, if given) in one transaction; durable on return.

        A key that is already there is left as it is (a retried commit is harmless).
        """
        ...

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        """Entries with seq > after, in order, at most `limit`."""
        ...

    async def position(self, session_id: str, key: str) -> int | None:
        """The seq of the entry with that key, or None."""
        ...

    async def aclose(self) -> None:
        """Flush and close."""
        ...
