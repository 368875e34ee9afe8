"""What a session knows between turns: its history, its cut, what it learned of its model, who listens.

The one place that shortens the history, and so the one that says so: every trim is recorded with the cut
it leaves and told to the client before anything else happens. Knows no protocol.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import trio

from runtime.errors import ProviderError
from runtime.events import Event, Noticed, TitleChanged, UsageChanged
from runtime.history.calibrate import calibration_ratio, silent_cut
from runtime.history.compose import Composed, compose
from runtime.history.live import trim_after_reply
from runtime.history.notice import TrimNotice
from runtime.history.recovery import recover
from runtime.history.turns import History
from runtime.ports import Client, Provider, Store, Tool, ToolContext
from runtime.profiles import Profile, Route
from runtime.prompt_tools import instructions
from runtime.rows import ToolSpec
from runtime.steps import Recorder
from schemas.transcript import ReplyStep, SessionState, TrimStep

TRIM_SECONDS = 2.0
"""How long recording and telling a trim may withstand a cancellation."""


def utc_now() -> str:
    """The time as stored and shown: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Setup:
    """What a session runs with. provider: makes or returns the model. kind: of provider, '' = none is set.

    prompt_tools: the model has no native calls, it writes them into its text.
    local: answers a prompt without the model (commands, what to set when there is none), None = ask it.
    """

    profile: Profile
    route: Route
    tools: Mapping[str, Tool]
    system: tuple[str, ...]
    provider: Callable[[], Awaitable[Provider]]
    local: Callable[["Conversation", str], Awaitable[str | None]]
    kind: str = ""
    prompt_tools: bool = False
    now: Callable[[], str] = utc_now


class Conversation:
    """A session's memory. `history` is replaced, never edited, when turns leave it."""

    def __init__(
        self,
        session_id: str,
        roots: tuple[Path, ...],
        setup: Setup,
        store: Store,
        client: Client,
        *,
        state: SessionState | None = None,
    ) -> None:
        self.session_id = session_id
        self.setup = setup
        self.store = store
        self.client = client
        self.route = setup.route
        self.history = History(self.system)
        self.state = state or SessionState()
        self.tool_context = ToolContext(session_id, roots[0], roots, client)
        self.pending: list[Noticed] = []
        self.title: str | None = None
        self.calibration = 1.0
        self.composed: Composed | None = None

    @property
    def system(self) -> tuple[str, ...]:
        """The leading system rows."""
        told = instructions(self.tool_specs) if self.setup.prompt_tools else ""
        return (*self.setup.system, told) if told else self.setup.system

    @property
    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is told of them."""
        return tuple(tool.spec for tool in self.setup.tools.values())

    @property
    def native_specs(self) -> tuple[ToolSpec, ...]:
        """The tools of a request's own field; none in prompt mode, where the system text has them."""
        return () if self.setup.prompt_tools else self.tool_specs

    async def emit(self, event: Event) -> None:
        """Tell the client."""
        await self.client.emit(self.session_id, event)

    async def show_pending(self) -> None:
        """Tell what came up while no turn ran."""
        pending, self.pending = self.pending, []
        for notice in pending:
            await self.emit(notice)

    async def local_answer(self, text: str) -> str | None:
        """The answer to a prompt that needs no model; None when the model is to be asked."""
        return await self.setup.local(self, text)

    async def compose(self, recorder: Recorder, number: int, *, with_tools: bool) -> Composed:
        """The next request. A shorter history is recorded and told before this returns.

        Raises ContextWindowExceeded; the history is then as it was.
        """
        composed = compose(
            self.history,
            self.setup.profile,
            self.route,
            self.native_specs if with_tools else (),
            callable_tools=frozenset(self.setup.tools),
            calibration=self.calibration,
        )
        await self.adopt(composed, recorder, number)
        return composed

    async def recover(
        self,
        error: ProviderError,
        refused: Composed,
        recorder: Recorder,
        number: int,
        *,
        with_tools: bool,
    ) -> Composed:
        """A smaller request after an overflow. Raises ContextWindowExceeded when nothing more may go."""
        result = recover(
            self.history,
            self.setup.profile,
            self.route,
            self.native_specs if with_tools else (),
            refused=refused,
            error=error,
            calibration=self.calibration,
        )
        if result.learned_window is not None:
            self.route = replace(self.route, learned_window=result.learned_window)
        if result.output_limit is not None:
            self.route = replace(self.route, max_output_tokens=result.output_limit)
        if result.composed is None:
            raise result.failure or error
        await self.adopt(result.composed, recorder, number)
        return result.composed

    async def adopt(self, composed: Composed, recorder: Recorder, number: int) -> None:
        """Go on with a composed request's history; record and tell what left it."""
        self.composed = composed
        for notice in composed.trims:
            await self.shorten(composed.history, notice, recorder, number)
        self.history = composed.history
        for warning in composed.warnings:
            await self.emit(warning)

    async def shorten(self, history: History, notice: TrimNotice, recorder: Recorder, number: int) -> None:
        """Replace the history by a shorter one: durable first, then told."""
        state = cut(self.state, history, notice)
        trim_id = f"{recorder.turn_id}-{number}-{history.first_kept_turn_id or ''}"
        step = trim_step(notice, trim_id, self.calibration, self.window)
        used = notice.tokens.after if notice.tokens else history.tokens
        # Whoever cancels here must still find the cut recorded, in force and told, or none of the three.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + TRIM_SECONDS):
            await recorder.trim(number, step, state)
            self.history, self.state = history, state
            await self.emit(notice.event(trim_id, used=used, size=self.size))

    @property
    def window(self) -> int:
        """The window that the last request was made for, tokens; 0 before the first."""
        composed = self.composed
        return 0 if composed is None else composed.budget.window

    @property
    def size(self) -> int:
        """What the client's meter is measured against: the window if known, else the budget."""
        composed = self.composed
        if composed is None:
            return 0
        return composed.budget.reported_window or composed.budget.dispatch_trim_budget

    async def count_usage(self, reply: ReplyStep) -> None:
        """Learn from what the provider counted, and move the client's meter."""
        composed = self.composed
        if composed is None:
            return
        used = composed.estimated_tokens
        if reply.usage is not None and reply.usage.input_tokens > 0:
            reported = reply.usage.input_tokens
            notice = silent_cut(composed, reported)
            if notice is not None:
                await self.emit(notice)
            else:
                self.calibration = calibration_ratio(reported, composed.raw_tokens)
            used = reported + reply.usage.output_tokens
        await self.emit(UsageChanged(used, self.size, composed.budget.reported_window is None))

    async def trim_after(self, reply: ReplyStep, recorder: Recorder, number: int) -> None:
        """After the final reply: if the provider counted more than the budget, trim for the next turn now."""
        composed = self.composed
        if composed is None or reply.usage is None:
            return
        history, notice = trim_after_reply(
            composed, self.history, reply.usage.input_tokens, self.setup.profile
        )
        if notice is not None:
            await self.shorten(history, notice, recorder, number)

    async def end_prompt(self, title: str) -> None:
        """A prompt was answered, well or not: the session's head moves."""
        named = title if self.title is None else None
        time = self.setup.now()
        await self.store.update_session(self.session_id, updated_at=time, title=named)
        self.title = self.title or title
        await self.emit(TitleChanged(self.title, time))


def cut(state: SessionState, history: History, notice: TrimNotice) -> SessionState:
    """The session's cut after a trim."""
    return state.model_copy(
        update={
            "first_turn_id": history.first_kept_turn_id or "",
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
        calibration=calibration,
        window=window,
    )
