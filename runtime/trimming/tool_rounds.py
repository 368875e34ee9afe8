"""Has the context trimmer look at the running turn before each of its provider calls: one pass, recorded.

Whatever it answers, raises or never answers, the turn goes on: a pass that fails leaves all as it was. The
step alone says what was done, so a replay needs no trimmer and a restored turn is the one that lived. Knows
the trimmer as a port.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

import trio

from runtime.history.live.history import History
from runtime.history.live.turn import Turn
from runtime.history.live.without_parts import Narrowed, narrowed
from runtime.history.request.budget import meter_size
from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX
from runtime.history.rows.calls_in_text import prompt_mode_calls, visible_text
from runtime.history.rows.estimate import RowPrice
from runtime.history.rows.notice import Reason, TrimNotice
from runtime.history.rows.tool_rounds import (
    Iteration,
    IterationCall,
    IterationResult,
    LoopChange,
    Output,
    Round,
    TrimView,
    spans,
    tool_rounds,
)
from runtime.ports import ContextTrimmer
from runtime.setup.session_setup import SUMMARY_SECONDS
from runtime.transcript.recorder import Recorder
from runtime.transcript.restore import arguments_object
from runtime.transcript.usage import usage_record
from runtime.trimming.model_context import HistoryKeeper, count_summary
from runtime.values.events import Noticed
from runtime.values.grace import withstanding
from runtime.values.ids_and_time import new_id
from runtime.values.model import UsagePart
from runtime.values.rows import Row, ToolCall
from runtime.values.texts import mended
from schemas.transcript import ContextStep, SummaryUsage


class BadView(ValueError):
    """A view that cannot be sent; the text says why."""


def iteration_of(number: int, rows: Sequence[Row], prices: Sequence[RowPrice]) -> Iteration:
    """A round's rows as a trimmer sees them. number: of the round in its turn, for calls without ids."""
    reply, results = rows[0], rows[1:]
    calls: Sequence[ToolCall] = reply.tool_calls
    if not calls:
        written = prompt_mode_calls(reply.content)
        calls = [ToolCall(f"text_{number}_{at}", one.name, one.arguments) for at, one in enumerate(written)]
    ids = [result.tool_call_id for result in results] if reply.tool_calls else [calls[0].id if calls else ""]
    return Iteration(
        tuple(
            IterationCall(call.id, call.name, arguments_object(call.arguments), call.arguments)
            for call in calls
        ),
        tuple(IterationResult(one or "", _output(row)) for one, row in zip(ids, results, strict=True)),
        reply.content if reply.tool_calls else visible_text(reply.content),
        sum(price.tokens for price in prices),
    )


def _output(row: Row) -> str:
    return row.content if row.role == "tool" else row.content.removeprefix(f"{TOOL_RESULTS_PREFIX}\n")


def checked(view: object) -> TrimView:
    """What a trimmer answered, as it can be recorded and read again. Raises BadView, and whatever its
    sequence raises.
    """
    if not isinstance(view, TrimView):
        raise BadView("it is no TrimView")
    history = tuple(view.history)
    if not all(map(_is_whole, history)):
        raise BadView("it has something else than rounds")
    if not (isinstance(view.summary, str) and isinstance(view.failure, str)):
        raise BadView("its summary or failure is no text")
    return TrimView(
        history,
        trimmed=bool(view.trimmed),
        persist=bool(view.persist),
        summary=mended(view.summary),
        failure=mended(view.failure),
        usage=_checked_usage(view.usage),
    )


def _is_whole(one: object) -> bool:
    """Whether it is a round whose calls and results are such, with texts in them."""
    return (
        isinstance(one, Iteration)
        and all(isinstance(call, IterationCall) for call in one.tool_calls)
        and all(isinstance(made, IterationResult) for made in one.tool_results)
        and all(isinstance(made.output, str) for made in one.tool_results)
    )


def _checked_usage(usage: object) -> tuple[str, UsagePart] | None:
    match usage:
        case None:
            return None
        case (str(route), UsagePart() as part):
            return mended(route), part
    raise BadView("its usage is no pair of a route and a UsagePart")


def change_of(given: Sequence[Iteration], view: TrimView) -> LoopChange:
    """What the view changes. Raises BadView."""
    places = {_ids(iteration): number for number, iteration in enumerate(given)}
    kept: list[int] = []
    outputs: list[Output] = []
    for iteration in view.history:
        number = places.get(_ids(iteration))
        if number is None or (kept and number <= kept[-1]):
            raise BadView("it has a round that was not there, or in another order")
        outputs += _new_outputs(number, given[number], iteration)
        kept.append(number)
    if not kept or kept[-1] != len(given) - 1:
        raise BadView("it has lost the newest round")
    return LoopChange(spans(kept), tuple(outputs), view.persist)


def _ids(iteration: Iteration) -> tuple[str, ...]:
    return tuple(call.id for call in iteration.tool_calls)


def _new_outputs(number: int, before: Iteration, after: Iteration) -> list[Output]:
    if [result.id for result in before.tool_results] != [result.id for result in after.tool_results]:
        raise BadView("a call in it has lost its result")
    pairs = zip(before.tool_results, after.tool_results, strict=True)
    changed = [(at, new.output) for at, (old, new) in enumerate(pairs) if old.output != new.output]
    return [(number, at, mended(text)) for at, text in changed]


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
        async with withstanding():
            await self._recorder.context(step, told=True)
            keeper.history = history
            size = meter_size(keeper.setup.profile, keeper.route)
            event = notice.event(trim_id, used=history.tokens, size=size.tokens)
            await keeper.emit(replace(event, size_is_budget=size.is_budget))

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
