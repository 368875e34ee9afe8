"""The store's port and its values: sessions' heads and the entries of their transcripts. Knows no store.

Apart from `runtime.ports`, because `session/new` needs this and nothing else of them.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

LAST_SEQ = 2**32 - 1
"""A seq that no entry of a session passes."""


class SessionRecord(NamedTuple):
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


class StoredEntry(NamedTuple):
    """One line of a transcript. key: the durable step's key, unique in the session. payload: JSON bytes.

    seq is given by the store: 1, 2, 3, … in a session; 0 before it was stored.
    """

    turn_id: str
    key: str
    kind: str
    payload: bytes
    seq: int = 0


class Checkpoint(NamedTuple):
    """What was made of a session's entries: those with after < seq <= this one. key: of the last of them.

    Nothing in it is known from elsewhere, so to lose it costs time.
    """

    seq: int
    after: int
    key: str
    value: bytes


class SessionPage(NamedTuple):
    """A page of sessions, newest change first. next_cursor: opaque, None on the last page."""

    sessions: tuple[SessionRecord, ...]
    next_cursor: str | None


class Holder(NamedTuple):
    """One opened session in one process. client: the program in front of it. See `conversation.lease`.

    machine, started: tell the process from others with its number, '' when that is not known.
    """

    id: str
    client: str = ""
    pid: int = 0
    host: str = ""
    machine: str = ""
    started: str = ""


class Lease(NamedTuple):
    """The right to write to a session. fence: grows each time that the session changes hands.

    fence 0: nothing was taken; entries are accepted as long as nobody else holds the session.
    last_seq: the session's last entry when it was taken, -1 when not known.
    """

    session_id: str
    holder: Holder
    fence: int
    last_seq: int


class Leases(Protocol):
    """Who may write to which session, among all processes that use a store."""

    async def take(self, session_id: str, holder: Holder) -> Lease:
        """Have a session, also one that was had already. It is kept until released, or the process ends.

        Raises SessionBusy while another holder is alive, StoreError.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give it back. Nothing happens when it was lost. Raises StoreError."""
        ...

    def is_lost(self, lease: Lease) -> bool:
        """Whether it is already known that someone else took the session."""
        ...


class Checkpoints(Protocol):
    """What was made of the entries of sessions. Raises StoreError; who calls may go on without."""

    async def latest(self, session_id: str, *, up_to: int = LAST_SEQ, limit: int = 100) -> list[Checkpoint]:
        """The newest one that ends at `up_to` or before, then the one that ends where that begins, and so on.

        A copy has those of its source, as far as it shares its entries.
        """
        ...

    async def keep(self, session_id: str, checkpoints: Sequence[Checkpoint]) -> None:
        """Keep them, in the place of others that end at the same entry; nothing without the session."""
        ...


class Hit(NamedTuple):
    """An entry that a search found, named as in its transcript. snippet: a piece of its text, one line."""

    turn_id: str
    key: str
    kind: str
    seq: int
    snippet: str


class Store(Protocol):
    """Transcripts, append-only. What a method acknowledged survives kill -9. Raises StoreError."""

    leases: Leases
    checkpoints: Checkpoints

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
        self,
        session_id: str,
        entries: Sequence[StoredEntry],
        *,
        head: HeadChange = UNCHANGED,
        lease: Lease | None = None,
    ) -> None:
        """Commit entries (and the head's change, if given) in one transaction; durable on return.

        A key that is already there is left as it is (a retried commit is harmless).
        lease: with it nothing is written if it was lost: raises LeaseLost, for fence 0 SessionBusy.
        """
        ...

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        """Entries with seq > after, in order, at most `limit`."""
        ...

    async def position(self, session_id: str, key: str) -> int | None:
        """The seq of the entry with that key, or None."""
        ...

    async def search(
        self, session_id: str, query: str, *, limit: int, before_turn: str | None = None
    ) -> list[Hit]:
        """The entries that fit the query's words best, best first; none for an unknown session.

        An entry need not have all words, rare ones count more, and a word finds longer ones that begin with
        it. No sign in a query has a meaning of its own. before_turn: only in what came before that turn.
        """
        ...

    async def delete_session(self, session_id: str) -> bool:
        """Leave nothing of a session. False: there is none. Raises SessionBusy while someone holds it."""
        ...

    async def fork_session(self, record: SessionRecord, source_id: str, *, up_to: int) -> None:
        """A new session with the source's entries of seq <= `up_to`, in one transaction.

        Raises InvalidParams when the id is taken, ResourceNotFound without the source.
        """
        ...

    async def purge(self, older_than: str) -> int:
        """Delete every session whose last change is before that time (ISO 8601 UTC); how many there were.

        One that someone holds stays.
        """
        ...

    def watch(self) -> AbstractAsyncContextManager[AsyncIterator[frozenset[str]]]:
        """See what changes: each item holds the ids of all sessions that got entries or a new head since the
        item before, or since the block was entered, by any process that uses the store, this one included.

        Nothing is missed, an id may come once too often. Waits while nothing changes, also while the store is
        in trouble; ends when it is closed. Raises StoreError on a closed store.
        """
        ...

    async def aclose(self) -> None:
        """Flush and close."""
        ...
