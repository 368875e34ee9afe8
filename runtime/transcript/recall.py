"""A session's transcript for looking things up in it: by words, or a whole turn by its number."""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from runtime.ports import Recalled
from runtime.transcript.turn_record import PAGE, Iteration, TurnRecord, read_turns
from runtime.values.stored import Store

if TYPE_CHECKING:
    from runtime.values.stored import Hit

WHAT = {"prompt": "prompt", "reply": "answer", "tool": "tool result", "end": "answer", "partial": "answer"}
"""Kind of step -> what the model is told that it is."""


class SessionRecall:
    """`runtime.ports.Recall` over a store. Keeps where each turn begins, as far as it has looked."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._begins: list[int] = []
        self._numbers: dict[str, int] = {}
        self._seen = 0

    async def search(self, query: str, limit: int) -> Sequence[Recalled]:
        hits = await self._store.search(self._session_id, query, limit=limit)
        await self._look_on()
        return [self._recalled(hit) for hit in hits if hit.turn_id in self._numbers]

    async def turn(self, number: int) -> str | None:
        await self._look_on()
        if not 1 <= number <= len(self._begins):
            return None
        after = self._begins[number - 1] - 1
        async with aclosing(read_turns(self._store, self._session_id, after=after)) as turns:
            async for turn in turns:
                return "\n".join(turn_lines(turn))
        return None

    def _recalled(self, hit: "Hit") -> Recalled:
        return Recalled(self._numbers[hit.turn_id], WHAT.get(hit.kind, hit.kind), hit.snippet)

    async def _look_on(self) -> None:
        """Count the turns that came since the last time."""
        while page := await self._store.entries(self._session_id, after=self._seen, limit=PAGE):
            for entry in page:
                if entry.kind == "prompt":
                    self._begins.append(entry.seq)
                    self._numbers[entry.turn_id] = len(self._begins)
            self._seen = page[-1].seq


def turn_lines(turn: TurnRecord) -> Iterator[str]:
    """A turn as text for the model: who said what, each call with all that it gave."""
    if turn.prompt is not None:
        yield from ("[user]", turn.prompt.text)
    for iteration in turn.iterations:
        yield from iteration_lines(iteration)
    if turn.end is not None and turn.end.told:
        yield from ("[shown at the end]", turn.end.told.strip())


def iteration_lines(iteration: Iteration) -> Iterator[str]:
    """A reply and the results of its calls, uncut."""
    reply = iteration.shown()
    if reply is None:
        return
    if reply.text:
        yield from ("[assistant]", reply.text)
    for call in reply.calls:
        yield f"[call {call.name} {call.arguments}]"
        step = iteration.tools.get(call.call_id)
        yield step.text if step is not None else "[no result was recorded]"
