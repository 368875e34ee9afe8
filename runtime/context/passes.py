"""One pass of a trimmer: rows to rounds, the trimmer's view to what changes in the rows, and back. Pure.

The step alone says what was done, so a replay needs no trimmer and a restored turn is the one that lived.
"""

from collections.abc import Sequence

from runtime.history.boundaries import TOOL_RESULTS_PREFIX
from runtime.history.estimate import RowPrice
from runtime.history.prompt_mode import prompt_mode_calls
from runtime.history.rounds import LoopChange, Output, spans
from runtime.iterations import Iteration, IterationCall, IterationResult, TrimView
from runtime.model import UsagePart
from runtime.prompt_tools import visible_text
from runtime.restore import arguments_object
from runtime.rows import Row, ToolCall
from runtime.unicode_text import mended


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
