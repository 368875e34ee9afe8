"""Where a session's turns and notices begin, read once and then only what is new. Keeps numbers, no text.

A transcript is only appended to, so what was read stays true; one that was deleted and made anew is noticed.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable

import orjson
import trio

from runtime.transcript.turn_record import PAGE
from runtime.values.stored import Store, StoredEntry

KEPT = 64
"""Sessions whose index is kept."""
RECENT = 512
"""Turns of one session whose ids are remembered: a cut is nearly always made among them."""
NOTICES = frozenset({"trim", "expand"})
_PASS = "context"
_TOLD = b'"trim_id":""'


class TurnIndex:
    """The places of one session, entries' numbers throughout.

    records: where each turn begins, also what lies between turns. prompts: of each prompt, so its place in
    the list is its number. notices: of all that was told of the history; cuts: beside each of them, the
    number of the oldest turn that was kept behind it, held ones aside.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.records = array("q")
        self.prompts = array("q")
        self.notices = array("q")
        self.cuts = array("q")
        self.last = 0
        self._recent: OrderedDict[str, int] = OrderedDict()
        self._last: StoredEntry | None = None
        self._lock = trio.Lock()

    async def refresh(self, store: Store) -> None:
        """Read what was written since. Raises StoreError."""
        async with self._lock:
            known, before = self._last, max(self.last - 1, 0)
            page = await store.entries(self.session_id, after=before, limit=PAGE)
            if known is not None and (not page or page[0].key != known.key):
                self._forget()
                page = await store.entries(self.session_id, limit=PAGE)
            while page:
                self._add(page)
                page = await store.entries(self.session_id, after=self.last, limit=PAGE)

    def _forget(self) -> None:
        for places in (self.records, self.prompts, self.notices, self.cuts):
            del places[:]
        self._recent.clear()
        self.last, self._last = 0, None

    def _add(self, page: Iterable[StoredEntry]) -> None:
        for entry in page:
            if entry.seq <= self.last:
                continue
            if self._last is None or self._last.turn_id != entry.turn_id:
                self.records.append(entry.seq)
            if entry.kind == "prompt":
                self.prompts.append(entry.seq)
                self._remember(entry.turn_id)
            if entry.kind in NOTICES or (entry.kind == _PASS and _TOLD not in entry.payload):
                self.notices.append(entry.seq)
                self.cuts.append(self._cut_by(entry))
            self.last, self._last = entry.seq, StoredEntry(entry.turn_id, entry.key, "", b"", entry.seq)

    def _remember(self, turn_id: str) -> None:
        self._recent[turn_id] = len(self.prompts)
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)

    def _cut_by(self, entry: StoredEntry) -> int:
        """The oldest kept turn behind a notice; as before it where it says nothing of that."""
        before = self.cuts[-1] if self.cuts else 1
        if entry.kind not in NOTICES:
            return before
        try:
            step = orjson.loads(entry.payload)
            first, dropped = str(step.get("first_turn_id", "")), int(step.get("dropped_turns", 0))
        except (ValueError, TypeError, AttributeError):
            return before
        if entry.kind == "expand" and not dropped:
            return 1
        return self._recent.get(first, before)

    async def number(self, store: Store, turn_id: str) -> int | None:
        """The number of a turn's prompt; None for a turn that is not there."""
        known = self._recent.get(turn_id)
        if known is None and turn_id:
            known = self.number_of(await store.position(self.session_id, f"turn:{turn_id}:prompt"))
        return known

    def number_at(self, entry: int) -> int:
        """The number of the newest prompt that is not behind that entry; 0 for none."""
        return bisect_right(self.prompts, entry)

    def number_of(self, prompt: int | None) -> int | None:
        """The number of the prompt that stands there; None where none does."""
        at = -1 if prompt is None else bisect_left(self.prompts, prompt)
        return at + 1 if 0 <= at < len(self.prompts) and self.prompts[at] == prompt else None


def behind(places: "array[int]", after: int, limit: int) -> list[int]:
    """The first places behind an entry, at most `limit`."""
    at = bisect_right(places, after)
    return list(places[at : at + limit])


def ahead_of(places: "array[int]", before: int, limit: int) -> list[int]:
    """The last places before an entry, at most `limit`, in order."""
    at = bisect_left(places, before)
    return list(places[max(at - limit, 0) : at])


class Indexes:
    """The indexes of the sessions that were asked for last."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, TurnIndex] = OrderedDict()

    async def of(self, store: Store, session_id: str) -> TurnIndex:
        """The index of a session, up to date. Raises StoreError."""
        index = self._known.get(session_id)
        if index is None:
            index = self._known[session_id] = TurnIndex(session_id)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(session_id)
        await index.refresh(store)
        return index
