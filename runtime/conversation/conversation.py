"""A session between turns: what the model still gets, who listens, where it is stored.

Knows no protocol. What the model sees is `runtime.trimming.model_context`; `runtime.session.turn` drives a
turn.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from runtime.conversation.request_log import RequestLog
from runtime.conversation.retry import MAY_PASS_ELSEWHERE
from runtime.conversation.switch_model import Switching
from runtime.history.live.history import History
from runtime.permission.ask_person import Approver
from runtime.permission.modes import ModeId, find_mode, mode_offer
from runtime.ports import Client, ToolContext
from runtime.setup.session_setup import Setup
from runtime.transcript.recall import SessionRecall
from runtime.transcript.recorder import Recorder
from runtime.transcript.session_state import state_after
from runtime.transcript.usage import Usage
from runtime.trimming.model_context import HistoryKeeper
from runtime.values.errors import ProviderError, SessionBusy
from runtime.values.events import Event, ModeChanged, Noticed, OptionsChanged, TitleChanged
from runtime.values.profiles import Offer
from runtime.values.prompt import CustomCommand, Prompt
from runtime.values.stored import HeadChange, Store
from schemas.transcript import PromptStep, SessionState


@dataclass(slots=True)
class Notes:
    """spent_before: all that was used before the newest turn.

    commands: those of the user's own making, by name. recorder: of the turn that runs.
    restored: a history, and its rows then, that still lacks the ids of calls in turns that are gone.
    on_prompt: hears of a prompt, with the id that it is stored under, when it became part of the session.
    """

    spent_before: Usage = field(default_factory=Usage)
    requests: RequestLog = field(default_factory=RequestLog)
    restored: tuple[History, int] | None = None
    commands: Mapping[str, CustomCommand] = field(default_factory=dict)
    recorder: Recorder | None = None
    on_prompt: Callable[[PromptStep], Awaitable[None]] | None = None

    async def tell_prompt(self) -> None:
        """Tell the running turn's prompt to whoever wants to hear of it."""
        if self.on_prompt is None or self.recorder is None:
            return
        for _, step in self.recorder.held:
            if isinstance(step, PromptStep):
                await self.on_prompt(step)
                return


LocalAnswer = Callable[["Conversation", str], Awaitable[str | None]]
"""Answers a prompt without the model (commands, what to set when there is none); None = ask it."""


class Conversation:
    """A session's memory and its surroundings."""

    def __init__(
        self,
        session_id: str,
        cwd: Path,
        setup: Setup,
        store: Store,
        client: Client,
        *,
        state: SessionState | None = None,
        title: str | None = None,
        local: "LocalAnswer | None" = None,
        switching: Switching | None = None,
    ) -> None:
        self.session_id = session_id
        self.store = store
        self.client = client
        self.title = title
        self._local = local
        self.switching = switching
        self.pending: list[Noticed] = []
        self.notes = Notes()
        self.keeper = HistoryKeeper(setup, state or SessionState(), self.emit)
        roots = roots_of(cwd, map(Path, self.keeper.state.directories))
        recall = SessionRecall(store, session_id)
        self.tool_context = ToolContext(session_id, cwd, roots, client, recall=recall)

    @property
    def setup(self) -> Setup:
        """What the session runs with."""
        return self.keeper.setup

    @cached_property
    def approver(self) -> Approver:
        """Whoever is asked before a tool runs. Goes on in the mode that the session was left in."""
        permission, root = self.setup.permission, self.tool_context.roots[0]
        return Approver(
            self.session_id,
            self.client,
            permission.policy(root),
            permission.remembered(root),
            mode=find_mode(self.keeper.state.mode) or permission.mode,
            on_mode=self._tell_mode,
        )

    def offers(self) -> tuple[Offer, ...]:
        """All that can be set, with what is set now or will be with the next turn."""
        others = () if self.switching is None else self.switching.offers()
        return (mode_offer(self.approver.mode), *others)

    def begin_turn(self, prompt: Prompt) -> None:
        """Go on with what was chosen since the last turn. None may be running."""
        if self.switching is not None:
            self.pending += self.switching.take_up(self.keeper, prompt)

    async def fall_back(self, error: ProviderError) -> bool:
        """Go on with the next model of the chain until the turn ends, if that may help and there is one."""
        if self.switching is None or error.kind not in MAY_PASS_ELSEWHERE:
            return False
        notice = self.switching.fall_back(self.keeper)
        if notice is None:
            return False
        await self.emit(Noticed(notice.severity, notice.title, f"{error.message} {notice.description}"))
        return True

    async def save_choice(self) -> None:
        """Store what is set. Between turns only: a turn that runs stores it with its end."""
        self.keeper.state = state = self._with_choices(self.keeper.state)
        await self.store.append(self.session_id, (), head=HeadChange(state=state.model_dump_json()))

    async def use_directories(self, directories: Sequence[Path]) -> None:
        """Let the tools use these folders beside the session's own from the next turn on, and no others."""
        keeper, names = self.keeper, tuple(map(str, directories))
        if names == keeper.state.directories:
            return
        context = self.tool_context
        self.tool_context = replace(context, roots=roots_of(context.cwd, directories))
        keeper.state = keeper.state.model_copy(update={"directories": names})
        # A window that only reads the session may choose its folders too; they are its own.
        head = HeadChange(state=keeper.state.model_dump_json())
        with suppress(SessionBusy):
            await self.store.append(self.session_id, (), head=head)

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
        self.notes.spent_before = self.keeper.spent
        await self.notes.tell_prompt()
        return None if self._local is None else await self._local(self, text)

    def next_head(self, title: str) -> HeadChange:
        """How the session's head changes with a prompt's end. title: for a session that has none yet."""
        keeper, title_now = self.keeper, (title or None) if self.title is None else None
        state = state_after(keeper.state, self.setup.profile, keeper.route, self.setup.route)
        state = self._with_choices(state)
        changed, keeper.state = state != keeper.state, state
        return HeadChange(self.setup.now(), title_now, state.model_dump_json() if changed else None)

    async def show_head(self, head: HeadChange) -> None:
        """Tell the title and the time, once they are stored."""
        self.title = head.title or self.title
        await self.emit(TitleChanged(self.title, head.updated_at or ""))

    def _with_choices(self, state: SessionState) -> SessionState:
        """The state with what is set. A mode that nobody chose stays the one of the settings."""
        mode = self.approver.mode
        if state.mode or mode != self.setup.permission.mode:
            state = state.model_copy(update={"mode": mode})
        return state if self.switching is None else self.switching.state(state)

    async def _tell_mode(self, mode: ModeId) -> None:
        await self.emit(ModeChanged(mode))
        await self.emit(OptionsChanged(self.offers()))


def roots_of(cwd: Path, directories: Iterable[Path]) -> tuple[Path, ...]:
    """Where tools may work. Links are resolved once: a tool's path is compared after its own links are."""
    return tuple(dict.fromkeys(folder.resolve() for folder in (cwd, *directories)))
