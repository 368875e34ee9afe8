"""A store that lives and dies with the process: for embedding and for tests. Knows no disk."""

from collections.abc import Sequence
from dataclasses import replace

import trio

from runtime.store.cursor import decode, encode, place_of
from runtime.store.faults import closed, id_taken, no_session
from runtime.stored import UNCHANGED, HeadChange, SessionPage, SessionRecord, StoredEntry


class _Transcript:
    __slots__ = ("entries", "head", "seqs")

    def __init__(self, head: SessionRecord) -> None:
        self.head = head
        self.entries: list[StoredEntry] = []
        self.seqs: dict[str, int] = {}


class MemoryStore:
    """The Store port over plain lists; keeps the same rules as the durable stores."""

    def __init__(self) -> None:
        self._transcripts: dict[str, _Transcript] = {}
        self._closed = False

    async def create_session(self, record: SessionRecord) -> None:
        """See the port."""
        await self._enter()
        if record.session_id in self._transcripts:
            raise id_taken(record.session_id)
        self._transcripts[record.session_id] = _Transcript(record)

    async def session(self, session_id: str) -> SessionRecord | None:
        """See the port."""
        await self._enter()
        found = self._transcripts.get(session_id)
        return found.head if found else None

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        """See the port."""
        place = decode(cursor)
        await self._enter()
        heads = [transcript.head for transcript in self._transcripts.values()]
        return cut_page(heads, cwd=cwd, place=place, limit=limit)

    async def append(
        self, session_id: str, entries: Sequence[StoredEntry], *, head: HeadChange = UNCHANGED
    ) -> None:
        """See the port."""
        await self._enter()
        found = self._find(session_id)
        for entry in entries:
            if entry.key not in found.seqs:
                found.seqs[entry.key] = seq = len(found.entries) + 1
                found.entries.append(replace(entry, seq=seq))
        found.head = changed_head(found.head, head)

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        """See the port."""
        await self._enter()
        found = self._transcripts.get(session_id)
        return found.entries[max(after, 0) :][: max(limit, 0)] if found else []

    async def position(self, session_id: str, key: str) -> int | None:
        """See the port."""
        await self._enter()
        found = self._transcripts.get(session_id)
        return found.seqs.get(key) if found else None

    async def aclose(self) -> None:
        """See the port."""
        self._closed = True
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


def changed_head(head: SessionRecord, change: HeadChange) -> SessionRecord:
    """The head after a change."""
    given = {name: value for name, value in change._asdict().items() if value is not None}
    return replace(head, **given) if given else head


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
