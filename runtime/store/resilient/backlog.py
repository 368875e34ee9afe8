"""Puts changes into a store that may fail or stand still, in order, and keeps what it does not take.

What was put here is stored, refused, or kept and told: never dropped because somebody waits no longer. Leases
go on too: while the store is in trouble nobody can be asked, so a session keeps what it has. Knows the port,
no particular store.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count, takewhile

import trio

from runtime.store.common.faults import StoreTrouble, TroubleKind, id_taken, no_session
from runtime.store.resilient.standstill import GRACE_SECONDS, Call, Standstill
from runtime.store.resilient.unsaved import Change, Created, Track, at_once, head_with, is_made, is_new
from runtime.values.errors import SessionBusy, StoreError
from runtime.values.stored import (
    LAST_SEQ,
    Checkpoint,
    Checkpoints,
    Holder,
    Lease,
    Leases,
    SessionRecord,
    Store,
)


class Backlog:
    """What is not stored yet. on_trouble, name, patience: see `ResilientStore`. on_kept: gets the id of a
    session of which something is kept.
    """

    def __init__(
        self,
        inner: Store,
        *,
        on_trouble: Callable[[str], None],
        on_kept: Callable[[str], None],
        name: str,
        patience: float,
    ) -> None:
        self._inner = inner
        self._on_trouble = on_trouble
        self._on_kept = on_kept
        self._name = name
        self._reported: set[TroubleKind] = set()
        self.tracks: dict[str, Track] = {}
        self.standstill = Standstill(self._recover, patience)

    def unsaved(self) -> list[Track]:
        """The sessions of which something is kept."""
        return [track for track in self.tracks.values() if track.changes]

    def kept(self, session_id: str) -> tuple[Change, ...]:
        """What of a session is kept just now, oldest first."""
        track = self.tracks.get(session_id)
        return () if track is None else tuple(track.changes)

    async def head(self, session_id: str, changes: Sequence[Change]) -> SessionRecord | None:
        """A session's head with the changes that are kept."""
        stored = None if is_new(changes) else await self._inner.session(session_id)
        return head_with(changes, stored)

    async def put(self, session_id: str, change: Change) -> None:
        """Store a change, or keep it. A cancellation that comes meanwhile ends the wait, after a moment, and
        not the change: this then returns.

        Raises StoreError for what can never work, LeaseLost, SessionBusy.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        is_first = session_id not in self.tracks
        track = self.tracks.setdefault(session_id, Track(session_id))
        if self.standstill.is_on:
            await trio.lowlevel.cancel_shielded_checkpoint()
        elif await self._locked(track):
            try:
                await self._store(track, change, is_first=is_first)
            finally:
                track.lock.release()
            if self._reported and not track.changes:
                await self.catch_up()
            return
        track.changes.append(change)
        self._on_kept(session_id)

    async def _locked(self, track: Track, *, patient: bool = False) -> bool:
        """Have the session's lock, unless that takes too long."""
        if at_once(track.lock) or await self.standstill.in_time(track.lock.acquire, patient=patient):
            return True
        self.stand_still()
        return False

    async def _store(self, track: Track, change: Change, *, is_first: bool) -> None:
        """Store a change behind those that wait. The lock is held by the caller."""
        if self.standstill.is_on:
            track.changes.append(change)
        elif track.changes:
            track.changes.append(change)
            await self._check(track, change)
            await self._flush(track, change)
        elif not (await self._stored_at_once(change) or (is_first and await self._is_made(change))):
            # Whatever was kept meanwhile came later.
            track.changes.appendleft(change)
            await self._check(track, change)
        elif track.changes:
            await self._flush(track)

    async def _stored_at_once(self, change: Change, *, patient: bool = False) -> bool:
        try:
            if await self.standstill.in_time(self._attempt(change), patient=patient):
                return True
            self.stand_still()
        except StoreTrouble as trouble:
            self.report(trouble)
        return False

    def _attempt(self, change: Change) -> Call:
        """What makes a change; the second time it may have been made by the first."""
        tries = count()

        async def make() -> None:
            again = next(tries) > 0
            try:
                await change.apply(self._inner)
            except StoreError:
                if not (again and await is_made(self._inner, change)):
                    raise

        return make

    async def _is_made(self, change: Change) -> bool:
        """Whether a session was stored although a failure was reported. Entries are known by their keys."""
        with suppress(StoreTrouble), trio.move_on_after(GRACE_SECONDS, shield=True):
            return await is_made(self._inner, change)
        return False

    async def _check(self, track: Track, change: Change) -> None:
        """Take a change that is kept out of memory again if the store would refuse it in good days too."""
        before = tuple(takewhile(lambda one: one is not change, track.changes))
        with suppress(StoreTrouble), trio.move_on_after(GRACE_SECONDS, shield=True):
            known = await self.head(track.session_id, before) is not None
            if known == isinstance(change, Created):
                del track.changes[len(before)]
                raise id_taken(track.session_id) if known else no_session(track.session_id)
        self._on_kept(track.session_id)

    async def _flush(self, track: Track, mine: Change | None = None, *, patient: bool = False) -> bool:
        """Store the oldest changes, until one cannot be stored: then False. Its lock is held by the caller.

        mine: the caller's own change, whose refusal is raised; of others the person is told. patient: without
        a limit.
        """
        refused: Exception | None = None
        while track.changes:
            oldest = track.changes[0]
            try:
                if not await self._stored_at_once(oldest, patient=patient):
                    return False
            except (StoreError, SessionBusy) as refusal:
                if oldest is mine:
                    refused = refusal
                elif not await self._is_made(oldest):
                    self._on_trouble(f"A change kept in memory could not be stored: {refusal}")
            track.changes.popleft()
        if refused is not None:
            raise refused
        return True

    async def catch_up(self, *, patient: bool = False) -> bool:
        """Store what other sessions hold back, and say so when nothing is left. False: something is."""
        sound = True
        for track in self.unsaved():
            if (not patient and self.standstill.is_on) or not await self._locked(track, patient=patient):
                return False
            try:
                sound = await self._flush(track, patient=patient) and sound
            finally:
                track.lock.release()
        if self._reported and not self.unsaved():
            self._reported.clear()
            self._on_trouble("The session store can be written again; everything kept in memory is stored.")
        return sound

    def stand_still(self) -> None:
        """Say that the store stands still. Until it goes on, whatever is put here is kept at once."""
        self.report(StoreTrouble(TroubleKind.STALLED, self._name))
        self.standstill.begin()

    async def _recover(self) -> None:
        """Until the store takes a change, and what is kept is stored. Other trouble ends this earlier."""
        with suppress(StoreError):
            # What nobody has is given back: of all changes the one that changes nothing.
            await self._inner.leases.release(Lease("", Holder(""), 0, -1))
        while await self.catch_up(patient=True) and self.unsaved():
            pass

    def report(self, trouble: StoreTrouble) -> None:
        """Tell of a trouble that was not told yet."""
        if trouble.kind not in self._reported:
            self._reported.add(trouble.kind)
            self._on_trouble(
                f"{trouble.message} Changes are kept in memory until it can be written; what was stored"
                " before is untouched."
            )


_UNKNOWN = -1


class ResilientLeases:
    """The `Leases` port over one that may fail. A lease of fence 0 stands for what could not be taken: what
    is kept in memory is stored later if nobody else holds the session by then.
    """

    def __init__(self, store: Store, inner: Leases, backlog: Backlog) -> None:
        self._store = store
        self._inner = inner
        self._backlog = backlog

    async def take(self, session_id: str, holder: Holder) -> Lease:
        leases: list[Lease] = []

        async def take() -> None:
            leases[:] = [await self._inner.take(session_id, holder)]

        try:
            if not self._backlog.standstill.is_on:
                if await self._backlog.standstill.in_time(take):
                    return leases[0]
                self._backlog.stand_still()
        except StoreTrouble as trouble:
            self._backlog.report(trouble)
        except StoreError:
            # One that is not stored yet is nobody else's.
            if await self._store.session(session_id) is None:
                raise no_session(session_id) from None
        return Lease(session_id, holder, 0, _UNKNOWN)

    async def release(self, lease: Lease) -> None:
        """A store that stands still is not waited for: a lease runs out by itself."""
        if lease.fence and not self._backlog.standstill.is_on:
            await self._inner.release(lease)

    def is_lost(self, lease: Lease) -> bool:
        return bool(lease.fence) and self._inner.is_lost(lease)


class ResilientCheckpoints:
    """The `Checkpoints` port over one that may fail."""

    def __init__(self, inner: Checkpoints, backlog: Backlog) -> None:
        self._inner = inner
        self._backlog = backlog

    async def latest(self, session_id: str, *, up_to: int = LAST_SEQ, limit: int = 100) -> list[Checkpoint]:
        with suppress(StoreTrouble):
            return await self._inner.latest(session_id, up_to=up_to, limit=limit)
        return []

    async def keep(self, session_id: str, checkpoints: Sequence[Checkpoint]) -> None:
        """None of entries that are not stored yet: they may be refused."""
        if self._backlog.kept(session_id) or self._backlog.standstill.is_on:
            return
        with suppress(StoreTrouble):
            await self._inner.keep(session_id, checkpoints)
