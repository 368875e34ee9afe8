"""What of one session is not stored yet, and how the session looks with it. Knows the port alone.

Named tuples rather than dataclasses: every start pays for these classes, and one costs a fifth.
"""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from runtime.store.common.faults import fork_taken, no_source
from runtime.store.memory import changed_head
from runtime.values.stored import HeadChange, Lease, SessionRecord, Store, StoredEntry

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


def at_once(lock: trio.Lock) -> bool:
    """Have the lock without a turn of the loop, if it is free."""
    try:
        lock.acquire_nowait()
    except trio.WouldBlock:
        return False
    return True


@asynccontextmanager
async def held(lock: trio.Lock) -> AsyncIterator[None]:
    """The lock, without a turn of the loop when it is free."""
    if not at_once(lock):
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()


async def is_made(store: Store, change: Change) -> bool:
    """Whether a session that cannot be created is there for the reason that it was created."""
    return isinstance(change, Created) and await store.session(change.record.session_id) == change.record


def is_new(changes: Sequence[Change]) -> bool:
    """Whether the store does not know the session at all."""
    return bool(changes) and isinstance(changes[0], Created)


def head_with(changes: Sequence[Change], stored: SessionRecord | None) -> SessionRecord | None:
    """The head as it will be; `stored` is what the store has."""
    head = stored
    for change in changes:
        match change:
            case Created(record):
                head = record
            case Appended(_, _, changed, _) if head:
                head = changed_head(head, changed)
    return head


def entries_of(changes: Sequence[Change], stored: Stored) -> list[StoredEntry]:
    """The entries that are not stored, numbered as the store will number them."""
    found: dict[str, StoredEntry] = {}
    for change in changes:
        for entry in change.entries if isinstance(change, Appended) else ():
            if entry.key not in stored.keys and entry.key not in found:
                found[entry.key] = entry._replace(seq=stored.last + len(found) + 1)
    return list(found.values())


async def stored_of(store: Store, track: Track) -> Stored:
    """What the store holds of a session that it knows. What was read once is not read again: nothing leaves
    a transcript, and a change that was given up may get there later.
    """
    stored = track.stored = track.stored or Stored()
    while True:
        page = await store.entries(track.session_id, after=stored.last, limit=_PAGE)
        stored.add(page)
        if len(page) < _PAGE:
            return stored


async def merged_entries(store: Store, track: Track, after: int, limit: int) -> list[StoredEntry]:
    """A page of what is stored and of what is not, whatever of it is stored meanwhile."""
    changes, stored, page = tuple(track.changes), Stored(), list[StoredEntry]()
    if not is_new(changes):
        stored = await stored_of(store, track)
        unsaved = entries_of(changes, stored)
        page = await store.entries(track.session_id, after=after, limit=limit)
    else:
        unsaved = entries_of(changes, stored)
    there = {entry.key for entry in page}
    behind = [entry for entry in unsaved if entry.seq > after and entry.key not in there]
    return (page + behind)[: max(limit, 0)]


async def merged_position(store: Store, track: Track, key: str) -> int | None:
    """The seq of the entry with that key, stored or not; None without it."""
    changes, stored = tuple(track.changes), Stored()
    if not is_new(changes):
        seq = await store.position(track.session_id, key)
        if seq is not None:
            return seq
        stored = await stored_of(store, track)
    return next((entry.seq for entry in entries_of(changes, stored) if entry.key == key), None)


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
