"""The runtime in your own trio program: `Agent` talks to your model with your tools, store and trimmer.

The one place in the runtime that picks what fills its ports; everything it uses can be used without it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import orjson
import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import new_session_id, read_state, restore
from runtime.embed.silent_client import BareClient
from runtime.permission.modes import Permission
from runtime.ports import (
    ContextTrimmer,
    PermissionOption,
    PermissionOutcome,
    Provider,
    Tool,
    ToolContext,
    ToolOutcome,
    ToolRequest,
    ToolView,
)
from runtime.session.session import Session
from runtime.setup.session_setup import Setup, Summariser
from runtime.store.memory import MemoryStore
from runtime.trimming.catalog import is_trimmer, parse_descriptor, trimmer_of
from runtime.values.errors import ConfigError
from runtime.values.events import AgentText, Event, HistoryTrimmed, Noticed, ToolCallStarted, ToolKind
from runtime.values.ids_and_time import utc_now
from runtime.values.profiles import Profile, Route
from runtime.values.prompt import Prompt, with_goal
from runtime.values.rows import ToolSpec
from runtime.values.stored import SessionRecord, Store

Approve = Callable[[ToolCallStarted], Awaitable[bool]]
"""Whether a call that changes something may run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a prompt. stop_reason: ACP's. trims: what left the model's view. notices: what else to
    know.
    """

    text: str
    stop_reason: str
    trims: tuple[HistoryTrimmed, ...] = ()
    notices: tuple[Noticed, ...] = ()


@dataclass(slots=True)
class FunctionTool:
    """A tool that is one async function: gets the arguments, gives the text for the model.

    parameters: a JSON schema; what does not fit it the function must refuse itself, by ToolError. kind: a
    tool of another kind than "read" or "search" runs only when the one before it is recorded.
    """

    name: str
    description: str
    run_it: Callable[[Mapping[str, object]], Awaitable[str]]
    parameters: Mapping[str, object] = field(default_factory=lambda: {"type": "object"})
    kind: ToolKind = "other"
    spec: ToolSpec = field(init=False)

    def __post_init__(self) -> None:
        """What the model is told."""
        self.spec = ToolSpec(self.name, self.description, orjson.dumps(self.parameters).decode())

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """The tool's name."""
        return ToolView(self.name)

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Reading by its kind, else anything."""
        await trio.lowlevel.checkpoint()
        return ToolRequest("read" if self.kind in ("read", "search") else "other", self.name)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Call the function."""
        return ToolOutcome(await self.run_it(arguments))


@dataclass(slots=True)
class _Listener(BareClient):
    """A client that keeps the answer of the running prompt and passes everything on."""

    on_event: Callable[[Event], Awaitable[None]] | None = None
    approve: Approve | None = None
    events: list[Event] = field(default_factory=list)

    async def emit(self, session_id: str, event: Event) -> None:
        if isinstance(event, AgentText | HistoryTrimmed | Noticed):
            self.events.append(event)
        if self.on_event is not None:
            await self.on_event(event)

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        allowed = self.approve is None or await self.approve(call)
        wanted = "allow_once" if allowed else "reject_once"
        return PermissionOutcome(next((option for option in options if option.kind == wanted), None))

    def answer(self, stop_reason: str) -> Answer:
        """What came since the last one."""
        events, self.events = self.events, []
        return Answer(
            "".join(event.text for event in events if isinstance(event, AgentText)),
            stop_reason,
            tuple(event for event in events if isinstance(event, HistoryTrimmed)),
            tuple(event for event in events if isinstance(event, Noticed)),
        )


class Agent:
    """One conversation. Use it as `async with`; `ask` as often as you like, one prompt at a time.

    provider: anything with `stream` (see `runtime.ports.Provider`); it stays yours to close. model and
    window: its model's name and how many tokens that takes. context: how a running turn is bounded, as
    `count:8`, `token-budget:8000`, `summarize:8000/4`, a name or a ContextTrimmer. profile: all other
    limits. store: yours, or None for memory; with a session_id that it knows, that session goes on.
    on_event: hears everything as it happens. approve: is asked before a tool changes something; None allows
    all.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        model: str = "",
        window: int | None = None,
        system: str = "You are a helpful agent.",
        tools: Sequence[Tool] = (),
        context: str | ContextTrimmer | None = None,
        profile: Profile | None = None,
        store: Store | None = None,
        session_id: str = "",
        cwd: str | Path = ".",
        on_event: Callable[[Event], Awaitable[None]] | None = None,
        approve: Approve | None = None,
    ) -> None:
        async def get() -> Provider:
            await trio.lowlevel.checkpoint()
            return provider

        self.session_id = session_id or new_session_id()
        self._store = store
        self._cwd = Path(cwd).resolve()
        self._client = _Listener(on_event, approve)
        self._session: Session | None = None
        route = Route(provider.name, model, window)
        summarise = Summariser(get, route)
        profile = profile or Profile()
        self._setup = Setup(
            profile=profile,
            route=route,
            tools={tool.spec.name: tool for tool in tools},
            system=(system,),
            provider=get,
            kind="embedded",
            permission=Permission("yolo" if approve is None else "ask"),
            trimmer=_trimmer(context, profile, summarise),
            summarise=summarise,
        )

    async def __aenter__(self) -> "Agent":
        """Open the session. Raises StoreError."""
        store = self._store or MemoryStore()
        record = await store.session(self.session_id)
        if record is None:
            record = SessionRecord(self.session_id, str(self._cwd), utc_now(), utc_now())
            await store.create_session(record)
            record = record._replace(state="")
        talk = Conversation(
            self.session_id, self._cwd, self._setup, store, self._client, state=read_state(record.state)
        )
        if record.state:
            await restore(talk)
        self._session = Session(talk)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop what runs. The store and the provider stay open: they are yours."""
        with trio.CancelScope(shield=True):
            await self.session.close()

    @property
    def on_event(self) -> Callable[[Event], Awaitable[None]] | None:
        """Who hears everything as it happens."""
        return self._client.on_event

    @on_event.setter
    def on_event(self, hear: Callable[[Event], Awaitable[None]] | None) -> None:
        self._client.on_event = hear

    @property
    def session(self) -> Session:
        """The open session, for what `ask` does not do: cancel, the history, the state."""
        if self._session is None:
            raise RuntimeError("use the agent as `async with Agent(...) as agent`")
        return self._session

    async def ask(self, text: str) -> Answer:
        """A whole turn: the model, its tools, the answer. `/goal TEXT` asks for TEXT and sets it as the goal.

        Raises what ended the turn (ProviderError, ContextWindowExceeded, StoreError), after it was recorded.
        Cancelled from outside, the turn is recorded as cancelled and the next prompt works.
        """
        self._client.events.clear()
        ticket = self.session.submit(with_goal(Prompt(text, ({"type": "text", "text": text},))))
        return self._client.answer(await self.session.run(ticket))


def _trimmer(
    context: str | ContextTrimmer | None, profile: Profile, summarise: Summariser
) -> ContextTrimmer | None:
    if context is None:
        return None
    if isinstance(context, str):
        return trimmer_of(parse_descriptor(context), profile.trim_slack_ratio, summarise)
    if not is_trimmer(context):
        needed = "an object with a name (text) and an async trim()"
        raise ConfigError(f"context: {type(context).__name__} is no trimmer; it must be {needed}")
    return context
