"""What the model still gets of a session, and what was learned of that model.

The one place that shortens a history, and so the one that says so: every trim is recorded with the cut it
leaves and told to the client before anything else happens. Knows no protocol, no store and no turn.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from runtime.history.live.history import History
from runtime.history.request.budget import MeterSize, meter_size
from runtime.history.request.compose import Composed, compose
from runtime.history.request.recovery import recover
from runtime.history.request.trims import trim_after_reply
from runtime.history.rows.calls_in_text import instructions
from runtime.history.rows.notice import TrimNotice
from runtime.history.rows.stated_sizes import Sizes
from runtime.setup.guidance import orientation, room
from runtime.setup.session_setup import Setup
from runtime.transcript.recorder import Recorder
from runtime.transcript.session_state import declared, goal_rows, keep_what_counts
from runtime.transcript.usage import Usage
from runtime.trimming.dropped_turn_notes import noted
from runtime.trimming.learned_limits import Counts, Refusals, named
from runtime.values.errors import ContextWindowExceeded
from runtime.values.events import Event, UsageChanged
from runtime.values.grace import withstanding
from runtime.values.ids_and_time import new_id
from runtime.values.rows import ToolSpec
from schemas.transcript import GoalStep, ReplyStep, SessionState, SummaryUsage, TrimStep

log = logging.getLogger("wholeturn.history")


class HistoryKeeper:
    """A session's history and its cut. `history` is replaced, never edited, when turns leave it."""

    def __init__(self, setup: Setup, state: SessionState, emit: Callable[[Event], Awaitable[None]]) -> None:
        self.setup = setup
        self.route = setup.route
        self.state = state
        self.history = History(self.system, counter=setup.counter)
        self.counts = Counts()
        self.refusals = Refusals()
        self.composed: Composed | None = None
        self.spent = Usage()
        self.shown: tuple[int, MeterSize] | None = None
        self.emit = emit

    def use(self, setup: Setup) -> None:
        """Go on with another setup. Nothing is trimmed by that; the next provider call does."""
        self.setup, self.route, self.counts = setup, setup.route, Counts()
        self.history.set_system(self.system)

    @property
    def calibration(self) -> float:
        """How many tokens the provider counts for each of ours."""
        return self.counts.calibration

    @calibration.setter
    def calibration(self, ratio: float) -> None:
        self.counts.calibration = ratio

    @property
    def system(self) -> tuple[str, ...]:
        """The leading system rows, with what they say of the goal."""
        return (*system_rows(self.setup), *goal_rows(self.state))

    @property
    def native_specs(self) -> tuple[ToolSpec, ...]:
        """The tools of a request's own field; none in prompt mode, where the system text has them."""
        return () if self.setup.prompt_tools else self.setup.specs

    async def compose(self, recorder: Recorder, number: int, *, with_tools: bool) -> Composed:
        """The next request. A shorter history is recorded and told before this returns.

        Raises ContextWindowExceeded; the history is then as it was.
        """
        composed = self._believed(with_tools=with_tools)
        older = composed.collapsed_turns
        if older and not number:
            log.info("the tool traffic of %d older turns is collapsed in the request", older)
        return await self._adopt(composed, recorder, number)

    def _believed(self, *, with_tools: bool) -> Composed:
        """The next request. A provider that counted wrongly once may not close the session for good: what is
        refused by its count alone is tried by our own, and its overflow error then has the last word.
        """
        try:
            return self.fitted(with_tools=with_tools)
        except ContextWindowExceeded:
            if self.calibration <= 1.0:
                raise
            self.counts.calibration = 1.0
            return self.fitted(with_tools=with_tools)

    def fitted(self, *, with_tools: bool = True, check_capacity: bool = True) -> Composed:
        """What `compose` would send, with nothing recorded, told or changed."""
        return compose(
            self.history,
            self.setup.profile,
            self.route,
            self.native_specs if with_tools else (),
            callable_tools=frozenset(self.setup.tools),
            calibration=self.calibration,
            check_capacity=check_capacity,
        )

    async def recover(
        self,
        stated: Sizes,
        refused: Composed,
        recorder: Recorder,
        number: int,
        *,
        with_tools: bool,
        share: float | None = None,
    ) -> Composed:
        """A smaller request after a refusal that stated these sizes. share: see `history.request.recovery`.

        Raises ContextWindowExceeded when nothing more may go.
        """
        result = recover(
            self.history,
            self.setup.profile,
            self.route,
            self.native_specs if with_tools else (),
            refused=refused,
            error=stated,
            calibration=self.calibration,
            share=share,
        )
        self.route = named(self.route, result.learned_window)
        if result.output_limit is not None:
            self.route = replace(self.route, max_output_tokens=result.output_limit)
        if result.composed is None:
            assert result.failure is not None
            raise result.failure
        return await self._adopt(result.composed, recorder, number)

    async def _adopt(self, composed: Composed, recorder: Recorder, number: int) -> Composed:
        """Go on with a composed request's history; record and tell what left it. Gives the request to
        send.
        """
        self.composed = composed
        if composed.healed:
            log.error("a request had a call without its result or the reverse; it was repaired")
        for notice in composed.trims:
            made = await noted(self.history, composed, notice, self.setup, self.route)
            self.composed = composed = made.composed
            await self.shorten(composed.history, made.notice, recorder, number, made.facts())
            count_summary(self, made.used)
        self.history = composed.history
        for warning in composed.warnings:
            await self.emit(warning)
        return composed

    async def shorten(
        self,
        history: History,
        notice: TrimNotice,
        recorder: Recorder,
        number: int,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        """Replace the history by a shorter one: durable first, then told. facts: more for the trim's step."""
        state = cut(self.state, history, notice, recorder.turn_id)
        trim_id = new_id()
        window = 0 if self.composed is None else self.composed.budget.window
        step = trim_step(notice, trim_id, self.calibration, window)
        step = step.model_copy(
            update={**(facts or {}), "first_turn_id": state.first_turn_id, "held": state.held}
        )
        used = notice.tokens.after if notice.tokens else history.tokens
        # Whoever cancels here must still find the cut recorded, in force and told, or none of the three.
        async with withstanding():
            await recorder.trim(number, step, state)
            self.history, self.state = history, state
            size = meter_size(self.setup.profile, self.route)
            self.shown = used, size
            event = notice.event(trim_id, used=used, size=size.tokens)
            await self.emit(replace(event, size_is_budget=size.is_budget))

    async def count_usage(self, reply: ReplyStep) -> None:
        """Learn from what the provider took and counted, and move the client's meter."""
        self.refusals.end()
        self.spent = self.spent.plus(reply.usage, self.setup.prices.get(self.route.id))
        composed = self.composed
        if composed is None:
            return
        used = composed.estimated_tokens
        if reply.usage is not None and reply.usage.input_tokens > 0:
            reported = reply.usage.input_tokens
            self.route = await self.counts.take(composed, reported, self.route, self.emit)
            used = reported + reply.usage.output_tokens
        await self.show_usage(used)

    async def show_usage(self, used: int | None = None, size: MeterSize | None = None) -> None:
        """Move the client's meter, once there was a request. used: tokens, None for the estimate of the last
        request. size: None for what it is measured against now.
        """
        if self.composed is not None:
            used = self.composed.estimated_tokens if used is None else used
            size = size or meter_size(self.setup.profile, self.route)
            self.shown = used, size
            await self.emit(UsageChanged(used, size.tokens, size.is_budget, self.spent.cost()))

    async def trim_after(self, reply: ReplyStep, recorder: Recorder, number: int) -> None:
        """After the final reply: if the provider counted more than the budget, trim for the next turn now."""
        if self.composed is None or reply.usage is None:
            return
        tokens = reply.usage.input_tokens
        history, notice = trim_after_reply(self.composed, self.history, tokens, self.setup.profile)
        if notice is not None:
            await self.shorten(history, notice, recorder, number)


async def declare_goal(keeper: HistoryKeeper, recorder: Recorder, text: str, turn_id: str) -> bool:
    """Make a text the session's goal from that turn on: durable, then in force. False: it was the goal
    already.
    """
    state = declared(keeper.history, keeper.state, text, turn_id)
    if state is None or state.goal is None:
        return False
    goal = state.goal
    step = GoalStep(text=goal.text, turn_id=turn_id, supersedes=goal.supersedes)
    async with withstanding():
        await recorder.goal(step, state)
        keeper.state = state
        keeper.history.set_system(keeper.system)
        keep_what_counts(keeper.history, state)
    return True


def count_summary(keeper: HistoryKeeper, used: SummaryUsage | None) -> None:
    """Add what a summary cost."""
    if used is not None:
        keeper.spent = keeper.spent.plus(used.usage, keeper.setup.prices.get(used.route))


def adopt(keeper: HistoryKeeper, setup: Setup) -> None:
    """Go on with another setup for the same model: what was learned of that stays."""
    route, counts = keeper.route, keeper.counts
    keeper.use(setup)
    keeper.route, keeper.counts = route, counts


def system_rows(setup: Setup) -> tuple[str, ...]:
    """The leading system rows: the prompt, guidance files and, in prompt mode, the tools."""
    guidance = orientation(setup.guidance, room(setup.profile, setup.route), setup.counter).text
    told = instructions(setup.specs) if setup.prompt_tools else ""
    return (*setup.system, *filter(None, (guidance, told)))


def cut(state: SessionState, history: History, notice: TrimNotice, turn_id: str) -> SessionState:
    """The session's cut after a trim. turn_id: of the turn in which it was made, before which all is gone
    when no turn is kept.
    """
    return state.model_copy(
        update={
            "first_turn_id": history.first_kept_turn_id or turn_id,
            "held": tuple(turn.turn_id for turn in history.turns[: history.beside.held]),
            "notes": history.beside.notes_text,
            "dropped_turns": state.dropped_turns + notice.dropped_turns,
            "history_has_trim_breadcrumb": history.crumb_present,
        }
    )


def trim_step(notice: TrimNotice, trim_id: str, calibration: float, window: int) -> TrimStep:
    """A notice as it is recorded."""
    tokens = notice.tokens
    return TrimStep(
        trim_id=trim_id,
        dropped_messages=notice.dropped_messages,
        dropped_turns=notice.dropped_turns,
        kept_turns=notice.kept_turns,
        reason=notice.reason,
        strategy=notice.strategy,
        token_budget=tokens.budget if tokens else None,
        tokens_before=tokens.before if tokens else None,
        tokens_after=tokens.after if tokens else None,
        before_source=tokens.before_source if tokens else None,
        after_source=tokens.after_source if tokens else None,
        note=notice.note,
        calibration=calibration,
        window=window,
    )
