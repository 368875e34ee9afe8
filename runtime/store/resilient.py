"""Keeps sessions going while their store is in trouble. Knows the port, no particular store.

A change that cannot be stored is kept in memory and seen by every read; it is stored, in order, with a
later change of the same session as soon as the store takes it. Changes of one session never overtake
each other; sessions do not wait for one another.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module

import trio

from runtime.errors import SessionBusy, StoreError
from runtime.store.cursor import decode
from runtime.store.faults import StoreTrouble, TroubleKind, closed, id_taken, no_session
from runtime.store.memory import cut_page
from runtime.store.resilient_leases import ResilientLeases
from runtime.store.unsaved import (
    Appended,
    Change,
    Created,
    Track,
    copy_by_hand,
    entries_of,
    head_with,
    held,
    is_made,
    is_new,
    merged_entries,
    stored_of,
)
from runtime.store.watching import Changed, Watchers, either
from runtime.stored import (
    UNCHANGED,
    HeadChange,
    Hit,
    Lease,
    Leases,
    SessionPage,
    SessionRecord,
    Store,
    StoredEntry,
)


class ResilientStore:
    """A store whose writes do not fail. on_trouble: gets a sentence for the person, once per trouble and when
    all is stored again; called in trio's thread, must not raise.

    Raises StoreError only for requests that can never work, and for reads of what only the troubled store
    knows.
    """

    def __init__(self, inner: Store, *, on_trouble: Callable[[str], None]) -> None:
        self._inner = inner
        self._on_trouble = on_trouble
        self._tracks: dict[str, Track] = {}
        self._reported: set[TroubleKind] = set()
        self._closed = False
        self._watchers = Watchers()
        self.leases: Leases = ResilientLeases(self, inner.leases, self._report)

    async def create_session(self, record: SessionRecord) -> None:
        """See the port."""
        await self._write(record.session_id, Created(record))

    async def session(self, session_id: str) -> SessionRecord | None:
        """See the port."""
        async with self._reading(session_id) as track:
            return await self._head(session_id, track.changes)

    async def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry],
        *,
        head: HeadChange = UNCHANGED,
        lease: Lease | None = None,
    ) -> None:
        """See the port."""
        await self._write(session_id, Appended(session_id, tuple(entries), head, lease))

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        """See the port."""
        async with self._reading(session_id) as track:
            if not track.changes:
                return await self._inner.entries(session_id, after=after, limit=limit)
            return await merged_entries(self._inner, track, after, limit)

    async def position(self, session_id: str, key: str) -> int | None:
        """See the port."""
        async with self._reading(session_id) as track:
            if not is_new(track.changes):
                seq = await self._inner.position(session_id, key)
                if seq is not None or not track.changes:
                    return seq
            unsaved = entries_of(track.changes, await stored_of(self._inner, track))
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

    async def search(
        self, session_id: str, query: str, *, limit: int, before_turn: str | None = None
    ) -> list[Hit]:
        """See the port. With unsaved entries all are read."""
        async with self._reading(session_id) as track:
            if not track.changes:
                return await self._inner.search(session_id, query, limit=limit, before_turn=before_turn)
        scan = import_module("runtime.store.scan")
        found: list[Hit] = await scan.search(self, session_id, query, limit, before_turn)
        return found

    async def delete_session(self, session_id: str) -> bool:
        """See the port. Never pretended: raises StoreTrouble while the stored part cannot be removed."""
        self._refuse_when_closed()
        track = self._tracks.get(session_id)
        if track is None or not track.changes:
            return await self._inner.delete_session(session_id)
        async with held(track.lock):
            if not is_new(track.changes):
                await self._inner.delete_session(session_id)
            track.changes.clear()
            track.stored = None
        return True

    async def fork_session(self, record: SessionRecord, source_id: str, *, up_to: int) -> None:
        """See the port."""
        self._refuse_when_closed()
        if not any(
            self._tracks[name].changes for name in (record.session_id, source_id) if name in self._tracks
        ):
            try:
                return await self._inner.fork_session(record, source_id, up_to=up_to)
            except StoreTrouble as trouble:
                self._report(trouble)
        await copy_by_hand(self, record, source_id, up_to, is_first=record.session_id not in self._tracks)

    async def purge(self, older_than: str) -> int:
        """See the port."""
        self._refuse_when_closed()
        await self._catch_up()
        removed = 0
        for track in self._unsaved():
            head = await self._head(track.session_id, track.changes)
            if head is not None and head.updated_at < older_than:
                removed += await self.delete_session(track.session_id)
        return removed + await self._inner.purge(older_than)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[frozenset[str]]]:
        """See the port. What is kept in memory is seen in this process."""
        self._refuse_when_closed()
        async with self._inner.watch() as stored:
            with self._watchers.joined() as watcher:
                yield Changed(watcher, either(stored))

    async def aclose(self) -> None:
        """Store what can be stored, say what could not, close."""
        if self._closed:
            return
        self._closed = True
        self._watchers.end()
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
        is_first = session_id not in self._tracks
        track = self._tracks.setdefault(session_id, Track(session_id))
        async with held(track.lock):
            if track.changes:
                await self._keep(track, change)
                await self._flush(track, change)
            elif not (await self._stored_at_once(change) or (is_first and await self._is_made(change))):
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

    async def _is_made(self, change: Change) -> bool:
        """Whether a session was stored although a failure was reported. Entries are known by their keys."""
        with suppress(StoreTrouble):
            return await is_made(self._inner, change)
        return False

    async def _keep(self, track: Track, change: Change) -> None:
        """Hold the change in memory, unless the store would refuse it in good days too."""
        with suppress(StoreTrouble):
            known = await self._head(track.session_id, track.changes) is not None
            if known and isinstance(change, Created):
                raise id_taken(track.session_id)
            if not known and not isinstance(change, Created):
                raise no_session(track.session_id)
        track.changes.append(change)
        self._watchers.tell(track.session_id)

    async def _flush(self, track: Track, mine: Change | None = None) -> None:
        """Store the oldest changes, until one cannot be stored. Its lock is held by the caller.

        mine: the caller's own change, whose refusal is raised; of others the person is told.
        """
        refused: Exception | None = None
        while track.changes:
            # Shielded, so that a change is never stored and still counted as unsaved.
            with trio.CancelScope(shield=True):
                try:
                    if not await self._stored_at_once(track.changes[0]):
                        return
                except (StoreError, SessionBusy) as refusal:
                    if track.changes[0] is mine:
                        refused = refusal
                    elif not await is_made(self._inner, track.changes[0]):
                        self._on_trouble(f"A change kept in memory could not be stored: {refusal}")
                track.changes.popleft()
                track.stored = None
        if refused is not None:
            raise refused

    async def _catch_up(self) -> None:
        """Store what other sessions hold back, and say so when nothing is left."""
        for track in self._unsaved():
            async with held(track.lock):
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

    def _unsaved(self) -> list[Track]:
        return [track for track in self._tracks.values() if track.changes]

    # ------------------------------------------------------------ reading

    @asynccontextmanager
    async def _reading(self, session_id: str) -> AsyncIterator[Track]:
        """The session's unsaved changes, held still when there are any."""
        self._refuse_when_closed()
        track = self._tracks.get(session_id)
        if track is None or not track.changes:
            yield Track(session_id)
            return
        async with track.lock:
            yield track

    async def _head(self, session_id: str, changes: deque[Change]) -> SessionRecord | None:
        stored = None if is_new(changes) else await self._inner.session(session_id)
        return head_with(changes, stored)

    async def _stored_page(self, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        try:
            return await self._inner.list_sessions(cwd=cwd, cursor=cursor, limit=limit)
        except StoreTrouble as trouble:
            self._report(trouble)
            return SessionPage((), None)
