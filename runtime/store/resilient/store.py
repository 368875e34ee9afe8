"""Keeps sessions going while their store is in trouble. Knows the port, no particular store.

A change that cannot be stored is kept in memory and seen by every read; it is stored, in order, with a
later change of the same session as soon as the store takes it. Changes of one session never overtake
each other; sessions do not wait for one another.
"""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import trio

from runtime.store.common.faults import StoreTrouble, closed, decode
from runtime.store.common.watching import Changed, Watchers, either
from runtime.store.memory import cut_page
from runtime.store.resilient.backlog import Backlog, ResilientCheckpoints, ResilientLeases
from runtime.store.resilient.standstill import GRACE_SECONDS, PATIENCE_SECONDS
from runtime.store.resilient.unsaved import (
    Appended,
    Created,
    copy_by_hand,
    held,
    is_new,
    merged_entries,
    merged_position,
)
from runtime.values.stored import (
    UNCHANGED,
    Checkpoints,
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
    all is stored again; called in trio's thread, must not raise. name: how the store is called to the person.
    patience: seconds that a write is waited for.

    Raises StoreError only for requests that can never work, and for reads of what only the troubled store
    knows.
    """

    def __init__(
        self,
        inner: Store,
        *,
        on_trouble: Callable[[str], None],
        name: str = "",
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._inner = inner
        self._on_trouble = on_trouble
        self._patience = patience
        self._closed = False
        self._watchers = Watchers()
        self._backlog = Backlog(
            inner, on_trouble=on_trouble, on_kept=self._watchers.tell, name=name, patience=patience
        )
        self.checkpoints: Checkpoints = ResilientCheckpoints(inner.checkpoints, self._backlog)
        self.leases: Leases = ResilientLeases(self, inner.leases, self._backlog)

    async def create_session(self, record: SessionRecord) -> None:
        self._refuse_when_closed()
        await self._backlog.put(record.session_id, Created(record))
        await trio.lowlevel.checkpoint_if_cancelled()

    async def session(self, session_id: str) -> SessionRecord | None:
        self._refuse_when_closed()
        return await self._backlog.head(session_id, self._backlog.kept(session_id))

    async def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry],
        *,
        head: HeadChange = UNCHANGED,
        lease: Lease | None = None,
    ) -> None:
        """A cancellation ends the wait, after a moment, and not the change."""
        self._refuse_when_closed()
        await self._backlog.put(session_id, Appended(session_id, tuple(entries), head, lease))

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        self._refuse_when_closed()
        if not self._backlog.kept(session_id):
            return await self._inner.entries(session_id, after=after, limit=limit)
        return await merged_entries(self._inner, self._backlog.tracks[session_id], after, limit)

    async def position(self, session_id: str, key: str) -> int | None:
        self._refuse_when_closed()
        if not self._backlog.kept(session_id):
            return await self._inner.position(session_id, key)
        return await merged_position(self._inner, self._backlog.tracks[session_id], key)

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        """Unsaved sessions are shown among the stored ones."""
        place = decode(cursor)
        self._refuse_when_closed()
        unsaved = self._backlog.unsaved()
        if not unsaved:
            return await self._inner.list_sessions(cwd=cwd, cursor=cursor, limit=limit)
        heads = [await self._backlog.head(one.session_id, tuple(one.changes)) for one in unsaved]
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
        """With unsaved entries all are read."""
        self._refuse_when_closed()
        if not self._backlog.kept(session_id):
            return await self._inner.search(session_id, query, limit=limit, before_turn=before_turn)
        from runtime.store.common.search import search

        return await search(self, session_id, query, limit, before_turn)

    async def delete_session(self, session_id: str) -> bool:
        """Never pretended: raises StoreTrouble while the stored part cannot be removed."""
        self._refuse_when_closed()
        track = self._backlog.tracks.get(session_id)
        if track is None or not track.changes:
            return await self._inner.delete_session(session_id)
        async with held(track.lock):
            if not is_new(track.changes):
                await self._inner.delete_session(session_id)
            track.changes.clear()
            track.stored = None
        return True

    async def fork_session(self, record: SessionRecord, source_id: str, *, up_to: int) -> None:
        self._refuse_when_closed()
        kept = self._backlog.kept(record.session_id) or self._backlog.kept(source_id)
        if not kept and not self._backlog.standstill.is_on:
            try:
                return await self._inner.fork_session(record, source_id, up_to=up_to)
            except StoreTrouble as trouble:
                self._backlog.report(trouble)
        await copy_by_hand(
            self, record, source_id, up_to, is_first=record.session_id not in self._backlog.tracks
        )

    async def purge(self, older_than: str) -> int:
        self._refuse_when_closed()
        await self._backlog.catch_up()
        removed = 0
        for track in self._backlog.unsaved():
            head = await self._backlog.head(track.session_id, tuple(track.changes))
            if head is not None and head.updated_at < older_than:
                removed += await self.delete_session(track.session_id)
        return removed + await self._inner.purge(older_than)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[frozenset[str]]]:
        """What is kept in memory is seen in this process."""
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
        standstill = self._backlog.standstill
        stuck = standstill.is_on
        try:
            stuck = not await standstill.end(self._patience)
            if not stuck:
                await self._backlog.catch_up()
        finally:
            stuck = stuck or standstill.is_on
            with trio.CancelScope(shield=True):
                await standstill.end(0)
            left = self._backlog.unsaved()
            if left:
                names = ", ".join(sorted(track.session_id for track in left))
                self._on_trouble(f"The store could not be written to the end; lost are changes of: {names}")
            with trio.move_on_after(GRACE_SECONDS if stuck else math.inf):
                await self._inner.aclose()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise closed()

    async def _stored_page(self, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        try:
            return await self._inner.list_sessions(cwd=cwd, cursor=cursor, limit=limit)
        except StoreTrouble as trouble:
            self._backlog.report(trouble)
            return SessionPage((), None)
