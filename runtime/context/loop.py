"""Has the trimmer look at the running turn before each of its provider calls.

Whatever it answers, raises or never answers, the turn goes on: a pass that fails leaves all as it was.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

import trio

from runtime.context.passes import BadView, change_of, checked, iteration_of
from runtime.events import Noticed
from runtime.history.narrow import Narrowed, narrowed
from runtime.history.notice import Reason, TrimNotice
from runtime.history.rounds import LoopChange, Round, tool_rounds
from runtime.history.turn import Turn
from runtime.history.turns import History
from runtime.ids import new_id
from runtime.iterations import Iteration, TrimView
from runtime.keeper import TRIM_SECONDS, HistoryKeeper, count_summary
from runtime.ports import ContextTrimmer
from runtime.steps import Recorder
from runtime.summaries import SUMMARY_SECONDS
from runtime.usage import usage_record
from schemas.transcript import ContextStep, SummaryUsage

log = logging.getLogger("wholeturn.context")

NOT_TRIMMED = "The tool rounds of this turn were not trimmed"
BAD_VIEW = "The view of the trimmer {name!r} cannot be sent: {why}."


class LoopContext:
    """The passes of one turn. Without a trimmer there are none, and nothing is recorded."""

    def __init__(self, keeper: HistoryKeeper, recorder: Recorder) -> None:
        self._keeper = keeper
        self._recorder = recorder
        self._known: dict[int, tuple[Sequence[object], Iteration]] = {}
        self._failures = 0
        self._again_at = 0

    async def before_call(self, number: int, attempt: int) -> None:
        """A pass for the turn's provider call `number`, behind that many failed attempts of it."""
        trimmer, turn = self._keeper.setup.trimmer, self._keeper.history.current
        if trimmer is None or turn is None:
            return
        rounds = tool_rounds(turn.repaired.rows)
        # After a failure the trimmer is left alone for a while: one that hangs would hold up every call.
        if not rounds or number < self._again_at or len(rounds) != len(tool_rounds(turn.rows)):
            return
        given = self._iterations(turn, rounds)
        view = await asked(trimmer, given, turn.rows[0].content)
        change, failure = None, view.failure
        if not failure:
            try:
                change = change_of(given, view)
            except BadView as error:
                failure = BAD_VIEW.format(name=trimmer.name, why=error)
        step = ContextStep(
            iteration=number,
            attempt=attempt,
            strategy=trimmer.name,
            rounds=len(rounds),
            used=usage_of(view),
        )
        if change is None:
            await self._failed(step, failure)
        else:
            await self._changed(step, change, view)
        count_summary(self._keeper, step.used)

    async def _failed(self, step: ContextStep, failure: str) -> None:
        self._failures += 1
        self._again_at = step.iteration + 2**self._failures
        await self._recorder.context(step.model_copy(update={"failure": failure}), told=True)
        await self._keeper.emit(Noticed("warning", NOT_TRIMMED, failure))

    async def _changed(self, step: ContextStep, change: LoopChange, view: TrimView) -> None:
        facts = {"kept": change.kept, "outputs": change.outputs, "persist": change.persist}
        step = step.model_copy(update={**facts, "summary": view.summary})
        made = narrowed(self._keeper.history, change)
        if self._keeper.history.marks.rounds_cut:
            step = step.model_copy(update={"rounds_cut": made.history.marks.rounds_cut})
        notice = notice_of(made, step)
        if notice is None:
            await self._recorder.context(step, told=False)
            self._keeper.history = made.history
        else:
            await self._narrow(made.history, step, notice)

    async def _narrow(self, history: History, step: ContextStep, notice: TrimNotice) -> None:
        """Go on with less: durable first, then told."""
        keeper, trim_id = self._keeper, new_id()
        facts = {"dropped_messages": notice.dropped_messages, "kept_turns": notice.kept_turns}
        step = step.model_copy(update={"trim_id": trim_id, **facts})
        # Whoever cancels here must still find all of it done, or nothing.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + TRIM_SECONDS):
            await self._recorder.context(step, told=True)
            keeper.history = history
            event = notice.event(trim_id, used=history.tokens, size=keeper.size)
            await keeper.emit(replace(event, size_is_budget=keeper.size_is_budget))

    def _iterations(self, turn: Turn, rounds: Sequence[Round]) -> list[Iteration]:
        """The rounds as values; those of rows that are as they were at the last pass are not made again."""
        rows, before, self._known = turn.repaired.rows, self._known, {}
        prices = turn.prices_of(rows)
        found = []
        for number, one in enumerate(rounds):
            own = rows[one.start : one.end]
            known = before.get(id(own[0]))
            if known is None or not all(map(is_same, known[0], own)):
                known = own, iteration_of(number, own, prices[one.start : one.end])
            self._known[id(own[0])] = known
            found.append(known[1])
        return found


def is_same(left: object, right: object) -> bool:
    """Whether both are one object."""
    return left is right


async def asked(trimmer: ContextTrimmer, given: Sequence[Iteration], prompt: str) -> TrimView:
    """The trimmer's view; one that says why, when it has none."""
    failure = f"The trimmer {trimmer.name!r} took longer than {SUMMARY_SECONDS:.0f} s."
    with trio.move_on_after(SUMMARY_SECONDS):
        try:
            return checked(await trimmer.trim(tuple(given), prompt))
        except BadView as error:
            failure = BAD_VIEW.format(name=trimmer.name, why=error)
        except Exception:
            log.exception("the context trimmer %r failed", trimmer.name)
            failure = f"The trimmer {trimmer.name!r} failed; the log has the details."
    return TrimView(given, trimmed=False, failure=failure)


def usage_of(view: TrimView) -> SummaryUsage | None:
    """What the pass cost, as it is recorded."""
    return (
        None if view.usage is None else SummaryUsage(route=view.usage[0], usage=usage_record(view.usage[1]))
    )


def notice_of(made: Narrowed, step: ContextStep) -> TrimNotice | None:
    """What the client is told; None when nothing left the view that was in the last one."""
    gone = made.dropped_rows or made.overwritten
    if not gone:
        return None
    reason = Reason.LOOP_SUMMARIZED if step.summary else Reason.LOOP_TRIMMED
    return TrimNotice(gone, 0, made.history.turn_count, reason.value, step.strategy, summary=step.summary)
