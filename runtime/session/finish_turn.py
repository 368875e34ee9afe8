"""The end of a turn, whatever ended it: pairs completed, what was shown kept, calls final, end recorded.

Runs in a grace period: of a cancellation each part of it feels the same moment, so that a client who does not
read keeps nothing from being recorded, and a store that stands still nothing from being told. Knows no
protocol; decides by one table what is told and kept.
"""

from collections.abc import Sequence

from runtime.history.request.trims import without_newest
from runtime.session.turn import Stage, Turn
from runtime.transcript.restore import closed, iteration_rows
from runtime.values.errors import ContextWindowExceeded, StoreError, find_error
from runtime.values.events import AgentText
from runtime.values.grace import Grace, grace_period
from runtime.values.ids_and_time import new_id
from runtime.values.texts import FAILED_TURN_RESULT
from schemas.transcript import EndStep, Outcome, Step

INTERNAL = "Something went wrong inside the agent; its log has the details."
NOT_RECORDED = "The end of the turn could not be recorded: the session store stands still."

LAST_SECONDS = 1.3
"""How long a store that keeps nothing may still hold up a cancellation, for the turn's end."""
TITLE_LENGTH = 60


async def settle(turn: Turn, *, error: BaseException | None, cancelled: bool) -> None:
    """Record and show the end. error: what `run` raised, None if it returned or was cancelled by the user.

    Raises StoreError when the end is neither stored nor kept by the store.
    """
    outcome = outcome_of(turn, error, cancelled)
    if outcome == "error":
        turn.ending.told = sentence(error)
    async with grace_period() as grace:
        before = await close_open(turn, outcome, grace)
        told_id = new_id() if turn.ending.told else ""
        if turn.ending.told:
            with grace.part():
                await turn.talk.emit(AgentText(told_id, turn.ending.told))
        step = end_step(turn, outcome, told_id, never_sent=never_sent(turn, error))
        if turn.stage is not Stage.NEW:
            await record_end(turn, step, before, grace)


def end_step(turn: Turn, outcome: Outcome, told_id: str, *, never_sent: bool) -> EndStep:
    """Take the turn out of what runs, and say how it ended."""
    excluded = turn.stage is Stage.LOCAL or never_sent
    turn.talk.keeper.history.close_turn()
    if excluded and turn.before is not None:
        turn.talk.keeper.history = without_newest(turn.talk.keeper.history, turn.before)
    return EndStep(
        outcome=outcome,
        stop_reason="cancelled" if outcome == "cancelled" else turn.ending.stop_reason,
        told_id=told_id,
        told=turn.ending.told,
        excluded=excluded,
    )


async def record_end(turn: Turn, step: EndStep, before: Sequence[tuple[str, Step]], grace: Grace) -> None:
    """Make the end durable, then tell what follows from it."""
    head = turn.talk.next_head(title_of(turn.prompt.text))
    with grace.part() as limit:
        await turn.recorder.end(step, before, head)
    if limit.cancelled_caught:
        # A store that keeps what it cannot write has taken it by now; another one needs the time.
        with grace.part(LAST_SECONDS) as limit:
            await turn.recorder.end(step, before, head)
        if limit.cancelled_caught:
            raise StoreError(NOT_RECORDED)
    if step.outcome == "done" and turn.current.reply is not None:
        with grace.part():
            await turn.talk.keeper.trim_after(turn.current.reply, turn.recorder, turn.number)
    with grace.part():
        # What came up while it was recorded is part of this turn: it may be that it is in memory only.
        await turn.talk.show_pending()
        await turn.talk.show_head(head)
        if turn.stage is not Stage.LOCAL and turn.talk.switching is not None:
            # Something may have been chosen while it ran.
            await turn.talk.switching.show(turn.talk.keeper)


def outcome_of(turn: Turn, error: BaseException | None, cancelled: bool) -> Outcome:
    """How the turn ended. A cancel counts whatever it made fail; a shutdown is a cancel too."""
    if turn.ending.stop_reason == "cancelled" or cancelled:
        return "cancelled"
    if error is not None and not isinstance(error, Exception):
        return "cancelled"
    if error is not None:
        return "error"
    return "no_model" if turn.stage is Stage.LOCAL else "done"


def never_sent(turn: Turn, error: BaseException | None) -> bool:
    """Whether the prompt itself was refused for its size: kept, it would refuse every later one as well."""
    return isinstance(error, ContextWindowExceeded) and turn.number == 0


def sentence(error: BaseException | None) -> str:
    """What the person reads of an error: ours are written for that, others are not."""
    known = None if error is None else find_error(error)
    return INTERNAL if known is None else known.message


def title_of(text: str) -> str:
    """A session's title from its first prompt: its first line of words, at most 60 characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


async def close_open(turn: Turn, outcome: Outcome, grace: Grace) -> list[tuple[str, Step]]:
    """Complete what is open in the last round; returns the steps to be recorded with the end."""
    if turn.asking.draft is not None and not turn.asking.draft.empty:
        turn.current.reply = turn.asking.draft.reply(interrupted=True)
    reply, steps = turn.current.reply, []
    if reply is not None:
        # Who is told now that a call is done must find it done after a crash.
        with grace.part():
            await turn.recorder.flush()
        steps.append(turn.recorder.entry(reply))
        missing = None if outcome == "cancelled" else FAILED_TURN_RESULT
        for call in reply.calls:
            if call.call_id not in turn.current.tools:
                step = turn.tools.result(turn.number, call, missing)
                turn.current.tools[call.call_id] = step
                steps.append(turn.recorder.entry(step))
    with grace.part():
        await turn.tools.show_ends()
    if turn.stage in (Stage.ASKED, Stage.ANSWERED):
        rows = list(iteration_rows(turn.current, FAILED_TURN_RESULT))
        turn.talk.keeper.history.append(closed(rows, outcome))
    return steps
