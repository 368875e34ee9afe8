"""A history out of a store, as the session left it: from the oldest kept turn on, with the call ids it used.

Ids of rounds that were folded away are free again, as they would be had it gone on living. Knows no open
session.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain, compress

import orjson

from runtime.history.live.history import History, add_turn
from runtime.history.live.preamble import notes_piece
from runtime.history.live.without_parts import without
from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX
from runtime.history.rows.token_counter import TokenCounter
from runtime.history.rows.tool_rounds import Span
from runtime.transcript.restore import JoinedTurn, join
from runtime.transcript.turn_record import TurnRecord, read_turns
from runtime.values.stored import Store, StoredEntry
from schemas.session_state import SessionState


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a history has that is no turn. taken_ids: of calls before its oldest turn, in order."""

    system: Sequence[str]
    counter: TokenCounter
    late_system: Sequence[str] = ()
    taken_ids: Sequence[str] = ()


async def first_kept_entry(store: Store, session_id: str, state: SessionState) -> int:
    """The seq of the first entry of the oldest turn that the model still gets; 1 when it gets all."""
    oldest = next(iter(state.held), state.first_turn_id)
    return await entry_of(store, session_id, oldest)


async def entry_of(store: Store, session_id: str, turn_id: str) -> int:
    """The seq of a turn's first entry; 1 for no turn."""
    if not turn_id:
        return 1
    return await store.position(session_id, f"turn:{turn_id}:prompt") or 1


@dataclass(slots=True)
class NewestCut:
    """Of how many tool rounds the newest turn's results are shortened, by the records of all kept turns."""

    rounds: int = 0

    def add(self, turn: TurnRecord, turns: Sequence[JoinedTurn]) -> None:
        """Take in the next record. turns: as they are with it."""
        if turn.end is not None and turn.end.excluded:
            return  # what was shortened for a prompt that no model gets is whole again
        if turns and turns[-1][0] == turn.turn_id:
            self.rounds = 0
        if turn.aside.rounds_cut is not None:
            self.rounds = max(turn.aside.rounds_cut, 0)


async def joined_turns(
    store: Store, session_id: str, first: int, before: int | None = None, cut: NewestCut | None = None
) -> AsyncGenerator[JoinedTurn, None]:
    """Each turn from that entry on, oldest first, with what joined it. before: the entry behind the last."""
    cut = cut or NewestCut()
    pending: list[JoinedTurn] = []
    async with aclosing(read_turns(store, session_id, after=first - 1)) as turns:
        async for turn in turns:
            if before is not None and turn.first_seq >= before:
                break
            join(pending, turn)
            cut.add(turn, pending)
            while len(pending) > 1:
                yield pending.pop(0)
    for one in pending:
        yield one


async def read_history(
    store: Store,
    session_id: str,
    state: SessionState,
    around: Surroundings,
    *,
    first: int,
    before: int | None = None,
) -> History:
    """The kept turns behind that entry, the state's oldest one. Turns in a gap are read and let go again, so
    that ids which they used stay used.
    """
    history = History(
        around.system, late_system=around.late_system, counter=around.counter, taken_ids=around.taken_ids
    )
    in_gap, gone, cut = bool(state.held), False, NewestCut()
    async with aclosing(joined_turns(store, session_id, first, before, cut)) as turns:
        async for turn_id, rows in turns:
            in_gap = in_gap and turn_id != state.first_turn_id
            add_turn(history, turn_id, rows)
            if gone:
                history = without(history, (len(history.past) - 1,))
            gone = in_gap and turn_id not in state.held
    history.crumb_present = state.history_has_trim_breadcrumb
    history.beside = replace(history.beside, notes=notes_piece(state.notes, around.counter))
    history.marks = replace(history.marks, rounds_cut=cut.rounds)
    return history


_MARKS = {
    "prompt": f'"text":"{TOOL_RESULTS_PREFIX}'.encode(),
    "reply": b'"calls":[{',
    "context": b'"persist":true',
    "end": b'"excluded":true',
}
"""Kinds of entries that matter, and what stands in those that have to be read for it."""


@dataclass(slots=True)
class UsedIds:
    """Feed it with a session's entries, or records, in order."""

    _settled: list[str] = field(default_factory=list)
    _rounds: list[Sequence[str]] = field(default_factory=list)
    """Of the newest turn that has any."""
    _fresh: bool = False
    """Whether what comes next is of another turn."""
    _before: bool = False

    def all(self) -> list[str]:
        """The ids so far, in order, repeated ones too."""
        return [*self._settled, *chain.from_iterable(self._rounds)]

    def add(self, entry: StoredEntry) -> None:
        """An entry. Read without the models: a resume of a long session looks at every reply."""
        mark = _MARKS.get(entry.kind)
        if mark is None or mark not in entry.payload:
            if entry.kind == "prompt":
                self._prompt("")
            return
        try:
            self._add(entry.kind, orjson.loads(entry.payload))
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # a later version's, or unreadable: passed over, as it is everywhere

    def add_turn(self, turn: TurnRecord) -> None:
        """The same of a whole record."""
        if turn.prompt is None or (turn.end is not None and turn.end.excluded):
            return
        self._prompt(turn.prompt.text)
        for iteration in turn.iterations:
            for step in iteration.contexts:
                if step.persist and not step.failure:
                    self._fold(step.kept)
            if (reply := iteration.reply) is not None and reply.calls:
                self._round([] if reply.prompt_mode else [call.id for call in reply.calls])

    def _add(self, kind: str, step: dict[str, object]) -> None:
        match kind, step:
            case "prompt", {"text": str(text)}:
                self._prompt(text)
            case "reply", {"calls": list(calls)}:
                self._round([] if step.get("prompt_mode") else [call["id"] for call in calls])
            case "context", {"kept": list(kept), "failure": ""}:
                self._fold(kept)
            case "end", _:
                self._fresh = self._before
            case _:
                pass

    def _prompt(self, text: str) -> None:
        self._before = self._fresh
        self._fresh = self._fresh or not text.startswith(TOOL_RESULTS_PREFIX)

    def _round(self, ids: Sequence[str]) -> None:
        if self._fresh:
            self._settled, self._rounds, self._fresh = self.all(), [], False
        self._rounds.append(ids)

    def _fold(self, kept: Iterable[Span]) -> None:
        if not self._fresh:
            spans = [(first, last) for first, last in kept]
            stays = (any(first <= at <= last for first, last in spans) for at in range(len(self._rounds)))
            self._rounds = list(compress(self._rounds, stays))
