"""What of one session is not stored yet, and how the session looks with it. Knows the port alone.

Named tuples rather than dataclasses: every start pays for these classes, and one costs a fifth.
"""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from runtime.store.faults import fork_taken, no_source
from runtime.store.memory import changed_head
from runtime.stored import HeadChange, Lease, SessionRecord, Store, StoredEntry

_PAGE = 1000


class Created(NamedTuple):
    """A new session."""

    record: SessionRecord

    async def apply(self, store: Store) -> None:
        """Make the change in `store`."""
        await store.create_session(self.record)


class Appended(NamedTuple):
    """New entries, perhaps with a change of the head."""

    session_id: str
    entries: tuple[StoredEntry, ...]
    head: HeadChange
    lease: Lease | None

    async def apply(self, store: Store) -> None:
        """Make the change in `store`."""
        await store.append(self.session_id, self.entries, head=self.head, lease=self.lease)


Change = Created | Appended


class Stored:
    """What the store holds of a session: its last number and all keys."""

    __slots__ = ("keys", "last")

    def __init__(self) -> None:
        self.last = 0
        self.keys: set[str] = set()

    def add(self, entries: Sequence[StoredEntry]) -> None:
        """Take note of a page."""
        self.keys.update(entry.key for entry in entries)
        self.last = max((entry.seq for entry in entries), default=self.last)


class Track:
    """One session's unsaved changes, oldest first, and the lock that keeps their order."""

    __slots__ = ("changes", "lock", "session_id", "stored")

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.changes: deque[Change] = deque()
        self.lock = trio.Lock()
        self.stored: Stored | None = None


@asynccontextmanager
async def held(lock: trio.Lock) -> AsyncIterator[None]:
    """The lock, without a turn of the loop when it is free."""
    try:
        lock.acquire_nowait()
    except trio.WouldBlock:
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()


async def is_made(store: Store, change: Change) -> bool:
    """Whether a session that cannot be created is there for the reason that it was created."""
    return isinstance(change, Created) and await store.session(change.record.session_id) == change.record


def is_new(changes: deque[Change]) -> bool:
    """Whether the store does not know the session at all."""
    return bool(changes) and isinstance(changes[0], Created)


def head_with(changes: deque[Change], stored: SessionRecord | None) -> SessionRecord | None:
    """The head as it will be; `stored` is what the store has."""
    head = stored
    for change in changes:
        match change:
            case Created(record):
                head = record
            case Appended(_, _, changed, _) if head:
                head = changed_head(head, changed)
    return head


def entries_of(changes: deque[Change], stored: Stored) -> list[StoredEntry]:
    """The entries that are not stored, numbered as the store will number them."""
    found: dict[str, StoredEntry] = {}
    for change in changes:
        for entry in change.entries if isinstance(change, Appended) else ():
            if entry.key not in stored.keys and entry.key not in found:
                found[entry.key] = entry._replace(seq=stored.last + len(found) + 1)
    return list(found.values())


async def stored_of(store: Store, track: Track) -> Stored:
    """What the store holds of the session; read once, until something of it is stored."""
    if track.stored is None:
        stored = Stored()
        while not is_new(track.changes):
            page = await store.entries(track.session_id, after=stored.last, limit=_PAGE)
            stored.add(page)
            if len(page) < _PAGE:
                break
        track.stored = stored
    return track.stored


async def merged_entries(store: Store, track: Track, after: int, limit: int) -> list[StoredEntry]:
    """A page of what is stored and of what is not."""
    page: list[StoredEntry] = []
    if not is_new(track.changes):
        page = await store.entries(track.session_id, after=after, limit=limit)
    unsaved = entries_of(track.changes, await stored_of(store, track))
    behind = [entry for entry in unsaved if entry.seq > after]
    return (page + behind)[: max(limit, 0)]


async def copy_by_hand(
    store: Store, record: SessionRecord, source_id: str, up_to: int, *, is_first: bool
) -> None:
    """Make a session of another one's entries, for a store that cannot do it in one piece just now.

    Or could, and only its report failed: then the very same session is there. is_first: nobody here has made
    one with its id before.
    """
    if await store.session(source_id) is None:
        raise no_source(source_id)
    found = await store.session(record.session_id)
    if is_first and found == record:
        return
    if found is not None:
        raise fork_taken(record.session_id)
    copies: list[StoredEntry] = []
    while page := await store.entries(source_id, after=copies[-1].seq if copies else 0):
        copies += page
    await store.create_session(record)
    await store.append(record.session_id, [entry for entry in copies if entry.seq <= up_to])
