"""A store that lives and dies with the process: for embedding and for tests. Knows no disk."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import trio

from runtime.store.common.faults import (
    closed,
    decode,
    encode,
    fork_taken,
    id_taken,
    no_session,
    no_source,
    place_of,
)
from runtime.store.common.leases import LEASE_SECONDS, Held, check, live_holder, refuse_others, taken
from runtime.store.common.watching import Changed, Watchers
from runtime.values.stored import (
    LAST_SEQ,
    UNCHANGED,
    Checkpoint,
    Checkpoints,
    HeadChange,
    Hit,
    Holder,
    Lease,
    Leases,
    SessionPage,
    SessionRecord,
    StoredEntry,
)


class _Transcript:
    __slots__ = ("checkpoints", "entries", "head", "held", "seqs")

    def __init__(self, head: SessionRecord) -> None:
        self.head = head
        self.entries: list[StoredEntry] = []
        self.seqs: dict[str, int] = {}
        self.checkpoints: dict[int, Checkpoint] = {}
        self.held: Held | None = None


class MemoryStore:
    """The Store port over plain lists; keeps the same rules as the durable stores.

    clock: seconds since 1970, for leases. One that writes nothing for long runs out.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._transcripts: dict[str, _Transcript] = {}
        self._clock = clock
        self._closed = False
        self._watchers = Watchers()
        self.leases: Leases = MemoryLeases(self._transcripts, clock)
        self.checkpoints: Checkpoints = MemoryCheckpoints(self._transcripts)

    async def create_session(self, record: SessionRecord) -> None:
        await self._enter()
        if record.session_id in self._transcripts:
            raise id_taken(record.session_id)
        self._transcripts[record.session_id] = _Transcript(record)
        self._watchers.tell(record.session_id)

    async def session(self, session_id: str) -> SessionRecord | None:
        await self._enter()
        found = self._transcripts.get(session_id)
        return found.head if found else None

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        place = decode(cursor)
        await self._enter()
        heads = [transcript.head for transcript in self._transcripts.values()]
        return cut_page(heads, cwd=cwd, place=place, limit=limit)

    async def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry],
        *,
        head: HeadChange = UNCHANGED,
        lease: Lease | None = None,
    ) -> None:
        await self._enter()
        found = self._find(session_id)
        if lease is not None:
            check(lease, found.held, self._clock())
            if found.held is not None and lease.fence:
                found.held = found.held._replace(expires_at=self._clock() + LEASE_SECONDS)
        for entry in entries:
            if entry.key not in found.seqs:
                found.seqs[entry.key] = seq = len(found.entries) + 1
                found.entries.append(entry._replace(seq=seq))
        found.head = changed_head(found.head, head)
        self._watchers.tell(session_id)

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        await self._enter()
        found = self._transcripts.get(session_id)
        return found.entries[max(after, 0) :][: max(limit, 0)] if found else []

    async def position(self, session_id: str, key: str) -> int | None:
        await self._enter()
        found = self._transcripts.get(session_id)
        return found.seqs.get(key) if found else None

    async def search(
        self, session_id: str, query: str, *, limit: int, before_turn: str | None = None
    ) -> list[Hit]:
        from runtime.store.common.search import search

        return await search(self, session_id, query, limit, before_turn)

    async def delete_session(self, session_id: str) -> bool:
        await self._enter()
        found = self._transcripts.get(session_id)
        if found is not None:
            refuse_others(session_id, found.held, "", self._clock())
        return self._transcripts.pop(session_id, None) is not None

    async def fork_session(self, record: SessionRecord, source_id: str, *, up_to: int) -> None:
        await self._enter()
        source = self._transcripts.get(source_id)
        if source is None:
            raise no_source(source_id)
        if record.session_id in self._transcripts:
            raise fork_taken(record.session_id)
        self._transcripts[record.session_id] = made = _Transcript(record)
        made.entries = source.entries[: max(up_to, 0)]
        made.seqs = source.seqs.copy()
        for entry in source.entries[len(made.entries) :]:
            del made.seqs[entry.key]
        shared = (kept for kept in source.checkpoints.items() if kept[0] <= len(made.entries))
        made.checkpoints = dict(shared)
        self._watchers.tell(record.session_id)

    async def purge(self, older_than: str) -> int:
        await self._enter()
        now = self._clock()
        old = [
            name
            for name, found in self._transcripts.items()
            if found.head.updated_at < older_than and live_holder(found.held, now) is None
        ]
        for name in old:
            del self._transcripts[name]
        return len(old)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[frozenset[str]]]:
        await self._enter()
        with self._watchers.joined() as watcher:
            yield Changed(watcher)

    async def aclose(self) -> None:
        self._closed = True
        self._watchers.end()
        await trio.lowlevel.checkpoint()

    async def _enter(self) -> None:
        await trio.lowlevel.checkpoint()
        if self._closed:
            raise closed()

    def _find(self, session_id: str) -> _Transcript:
        found = self._transcripts.get(session_id)
        if found is None:
            raise no_session(session_id)
        return found


class MemoryLeases:
    """The `Leases` port over the same transcripts."""

    def __init__(self, transcripts: dict[str, _Transcript], clock: Callable[[], float]) -> None:
        self._transcripts = transcripts
        self._clock = clock

    async def take(self, session_id: str, holder: Holder) -> Lease:
        await trio.lowlevel.checkpoint()
        found = self._transcripts.get(session_id)
        if found is None:
            raise no_session(session_id)
        found.held = held = taken(session_id, found.held, holder, self._clock())
        return Lease(session_id, holder, held.fence, len(found.entries))

    async def release(self, lease: Lease) -> None:
        await trio.lowlevel.checkpoint()
        found = self._transcripts.get(lease.session_id)
        if found is not None and found.held is not None and found.held.fence == lease.fence:
            found.held = Held(lease.fence, None, 0.0)

    def is_lost(self, lease: Lease) -> bool:
        found = self._transcripts.get(lease.session_id)
        return found is not None and found.held is not None and found.held.fence != lease.fence


class MemoryCheckpoints:
    """The `Checkpoints` port over the same transcripts."""

    def __init__(self, transcripts: dict[str, _Transcript]) -> None:
        self._transcripts = transcripts

    async def latest(self, session_id: str, *, up_to: int = LAST_SEQ, limit: int = 100) -> list[Checkpoint]:
        await trio.lowlevel.checkpoint()
        kept = self._transcripts[session_id].checkpoints if session_id in self._transcripts else {}
        found: list[Checkpoint] = []
        while len(found) < limit and (seq := max((seq for seq in kept if seq <= up_to), default=0)):
            found.append(kept[seq])
            up_to = kept[seq].after
        return found

    async def keep(self, session_id: str, checkpoints: Sequence[Checkpoint]) -> None:
        await trio.lowlevel.checkpoint()
        if session_id in self._transcripts:
            kept = self._transcripts[session_id].checkpoints
            kept.update((checkpoint.seq, checkpoint) for checkpoint in checkpoints)


def changed_head(head: SessionRecord, change: HeadChange) -> SessionRecord:
    """The head after a change."""
    given = {name: value for name, value in change._asdict().items() if value is not None}
    return head._replace(**given) if given else head


def cut_page(
    heads: Sequence[SessionRecord],
    *,
    cwd: str | None,
    place: tuple[str, str] | None,
    limit: int,
    more: bool = False,
) -> SessionPage:
    """The page after `place` out of heads in any order. `more`: others follow behind the last one."""
    limit = max(limit, 1)
    wanted = [
        head
        for head in heads
        if (cwd is None or head.cwd == cwd) and (place is None or place_of(head) < place)
    ]
    wanted.sort(key=place_of, reverse=True)
    page = tuple(wanted[:limit])
    follows = len(wanted) > limit or (more and bool(page))
    return SessionPage(page, encode(page[-1]) if follows else None)
