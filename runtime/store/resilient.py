"""Keeps sessions going while their store is in trouble. Knows the port, no particular store.

A change that cannot be stored is kept in memory and seen by every read; it is stored, in order, with a
later change of the same session as soon as the store takes it. Changes of one session never overtake
each other; sessions do not wait for one another.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import trio

from runtime.errors import StoreError
from runtime.store.cursor import decode
from runtime.store.faults import StoreTrouble, TroubleKind, closed, id_taken, no_session
from runtime.store.memory import cut_page
from runtime.store.unsaved import Appended, Change, Created, Stored, entries_of, head_with, is_new
from runtime.stored import UNCHANGED, HeadChange, SessionPage, SessionRecord, Store, StoredEntry

_PAGE = 1000


class _Track:
    """One session's unsaved changes, oldest first, and the lock that keeps their order."""

    __slots__ = ("changes", "lock", "session_id", "stored")

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.changes: deque[Change] = deque()
        self.lock = trio.Lock()
        self.stored: Stored | None = None


class ResilientStore:
    """A store whose writes do not fail. on_trouble: gets a sentence for the person, once per trouble, and
    one when all is stored again; called in trio's thread and must not raise.

    Raises StoreError only for requests that can never work, and for reads of what only the troubled store
    knows.
    """

    def __init__(self, inner: Store, *, on_trouble: Callable[[str], None]) -> None:
        self._inner = inner
        self._on_trouble = on_trouble
        self._tracks: dict[str, _Track] = {}
        self._reported: set[TroubleKind] = set()
        self._closed = False

    async def create_session(self, record: SessionRecord) -> None:
        """See the port."""
        await self._write(record.session_id, Created(record))

    async def session(self, session_id: str) -> SessionRecord | None:
        """See the port."""
        async with self._reading(session_id) as track:
            return await self._head(session_id, track.changes)

    async def append(
        self, session_id: str, entries: Sequence[StoredEntry], *, head: HeadChange = UNCHANGED
    ) -> None:
        """See the port."""
        await self._write(session_id, Appended(session_id, tuple(entries), head))

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        """See the port."""
        async with self._reading(session_id) as track:
            if not track.changes:
                return await self._inner.entries(session_id, after=after, limit=limit)
            return await self._merged_entries(track, after, limit)

    async def position(self, session_id: str, key: str) -> int | None:
        """See the port."""
        async with self._reading(session_id) as track:
            if not is_new(track.changes):
                seq = await self._inner.position(session_id, key)
                if seq is not None or not track.changes:
                    return seq
            unsaved = entries_of(track.changes, await self._stored(track))
            return next((entry.seq for entry in unsaved if entry.key == key), None)

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        """See the port. Unsaved sessions are shown among the stored ones."""
        place = decode(cursor)
        self._refuse_when_closed()
        unsaved = self._unsaved()
        if not unsaved:
            return await self._inner.list_sessions(cwd=cwd, cursor=cursor, limit=limit)
        heads = [await self._head(track.session_id, track.changes) for track in unsaved]
        page = await self._stored_page(cwd, cursor, limit + len(unsaved))
        changed = {track.session_id for track in unsaved}
        others = [record for record in page.sessions if record.session_id not in changed]
        mine = [head for head in heads if head is not None]
        return cut_page(
            [*others, *mine], cwd=cwd, place=place, limit=limit, more=page.next_cursor is not None
        )

    async def aclose(self) -> None:
        """Store what can be stored, say what could not, close."""
        if self._closed:
            return
        self._closed = True
        with trio.CancelScope(shield=True):
            await self._catch_up()
            left = self._unsaved()
            if left:
                names = ", ".join(sorted(track.session_id for track in left))
                self._on_trouble(f"The store could not be written to the end; lost are changes of: {names}")
            await self._inner.aclose()

    # ------------------------------------------------------------ writing

    async def _write(self, session_id: str, change: Change) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        self._refuse_when_closed()
        track = self._tracks.setdefault(session_id, _Track(session_id))
        async with _held(track.lock):
            if track.changes:
                await self._keep(track, change)
                await self._flush(track)
            elif not await self._stored_at_once(change):
                await self._keep(track, change)
        if self._reported and not track.changes:
            await self._catch_up()
        await trio.lowlevel.checkpoint_if_cancelled()

    async def _stored_at_once(self, change: Change) -> bool:
        try:
            await change.apply(self._inner)
        except StoreTrouble as trouble:
            self._report(trouble)
            return False
        return True

    async def _keep(self, track: _Track, change: Change) -> None:
        """Hold the change in memory, unless the store would refuse it in good days too."""
        with suppress(StoreTrouble):
            known = await self._head(track.session_id, track.changes) is not None
            if known and isinstance(change, Created):
                raise id_taken(track.session_id)
            if not known and not isinstance(change, Created):
                raise no_session(track.session_id)
        track.changes.append(change)

    async def _flush(self, track: _Track) -> None:
        """Store the oldest changes, until one cannot be stored. Its lock is held by the caller."""
        while track.changes:
            # Shielded, so that a change is never stored and still counted as unsaved.
            with trio.CancelScope(shield=True):
                try:
                    if not await self._stored_at_once(track.changes[0]):
                        return
                except StoreError as refusal:
                    self._on_trouble(f"A change kept in memory could not be stored: {refusal}")
                track.changes.popleft()
                track.stored = None

    async def _catch_up(self) -> None:
        """Store what other sessions hold back, and say so when nothing is left."""
        for track in self._unsaved():
            async with _held(track.lock):
                await self._flush(track)
        if self._reported and not self._unsaved():
            self._reported.clear()
            self._on_trouble("The session store can be written again; everything kept in memory is stored.")

    def _report(self, trouble: StoreTrouble) -> None:
        if trouble.kind not in self._reported:
            self._reported.add(trouble.kind)
            self._on_trouble(
                f"{trouble.message} Changes are kept in memory until it can be written; what was stored"
                " before is untouched."
            )

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise closed()

    def _unsaved(self) -> list[_Track]:
        return [track for track in self._tracks.values() if track.changes]

    # ------------------------------------------------------------ reading

    @asynccontextmanager
    async def _reading(self, session_id: str) -> AsyncIterator[_Track]:
        """The session's unsaved changes, held still when there are any."""
        self._refuse_when_closed()
        track = self._tracks.get(session_id)
        if track is None or not track.changes:
            yield _Track(session_id)
            return
        async with track.lock:
            yield track

    async def _head(self, session_id: str, changes: deque[Change]) -> SessionRecord | None:
        stored = None if is_new(changes) else await self._inner.session(session_id)
        return head_with(changes, stored)

    async def _merged_entries(self, track: _Track, after: int, limit: int) -> list[StoredEntry]:
        page: list[StoredEntry] = []
        if not is_new(track.changes):
            page = await self._inner.entries(track.session_id, after=after, limit=limit)
        unsaved = entries_of(track.changes, await self._stored(track))
        behind = [entry for entry in unsaved if entry.seq > after]
        return (page + behind)[: max(limit, 0)]

    async def _stored(self, track: _Track) -> Stored:
        if track.stored is None:
            stored = Stored()
            while not is_new(track.changes):
                page = await self._inner.entries(track.session_id, after=stored.last, limit=_PAGE)
                stored.add(page)
                if len(page) < _PAGE:
                    break
            track.stored = stored
        return track.stored

    async def _stored_page(self, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        try:
            return await self._inner.list_sessions(cwd=cwd, cursor=cursor, limit=limit)
        except StoreTrouble as trouble:
            self._report(trouble)
            return SessionPage((), None)


@asynccontextmanager
async def _held(lock: trio.Lock) -> AsyncIterator[None]:
    """The lock, without a turn of the loop when it is free."""
    try:
        lock.acquire_nowait()
    except trio.WouldBlock:
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()
