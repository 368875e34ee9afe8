"""Which of the provider's call ids a stored session has used, as it would know them had it gone on living.

Ids of rounds that were folded away are free again there, so they are not among them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress

import orjson

from runtime.history.boundaries import TOOL_RESULTS_PREFIX
from runtime.history.rounds import Span
from runtime.record import TurnRecord
from runtime.stored import StoredEntry

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
