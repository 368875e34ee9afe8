"""Stand-ins that behave like the real thing: a client that remembers, a session over memory and a script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

from runtime.conversation.conversation import Conversation
from runtime.embed.silent_client import BareClient
from runtime.ports import (
    PermissionOption,
    PermissionOutcome,
    Provider,
    Tool,
    ToolContext,
    ToolOutcome,
    ToolRequest,
    ToolView,
)
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.providers.scripted.script import parse_script
from runtime.session.session import Session
from runtime.setup.session_setup import Setup
from runtime.store.memory import MemoryStore
from runtime.values.errors import ToolError
from runtime.values.events import AgentText, Event, HistoryTrimmed, ToolCallChanged, ToolCallStarted, ToolKind
from runtime.values.profiles import Profile, Route
from runtime.values.prompt import Prompt
from runtime.values.rows import ToolSpec
from runtime.values.stored import SessionRecord, Store

TIME = "2026-01-01T00:00:00.000Z"


@dataclass(slots=True)
class RecordingClient(BareClient):
    """A `Client` that keeps all events and has some unsaved files.

    answer: what is chosen where permission is asked: a kind of option, "cancelled", "none" (an answer that
    means nothing) or "never" (no answer). asked: the calls that it was asked about, with the options.
    """

    events: list[Event] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    answer: str = "allow_once"
    asked: list[tuple[ToolCallStarted, tuple[PermissionOption, ...]]] = field(default_factory=list)

    async def emit(self, session_id: str, event: Event) -> None:
        await trio.lowlevel.checkpoint()
        self.events.append(event)

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        await trio.lowlevel.checkpoint()
        return self.files.get(str(path))

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        await trio.lowlevel.checkpoint()
        self.asked.append((call, tuple(options)))
        if self.answer == "never":
            await trio.sleep_forever()
        chosen = next((option for option in options if option.kind == self.answer), None)
        return PermissionOutcome(chosen, cancelled=self.answer == "cancelled")

    def text(self) -> str:
        """All visible text."""
        return "".join(event.text for event in self.events if isinstance(event, AgentText))

    def trims(self) -> list[HistoryTrimmed]:
        """All notices of trims."""
        return [event for event in self.events if isinstance(event, HistoryTrimmed)]

    def statuses(self, call_id: str) -> list[str]:
        """What a call went through after it was announced."""
        changes = (event for event in self.events if isinstance(event, ToolCallChanged))
        return [event.status for event in changes if event.call_id == call_id]


@dataclass(slots=True)
class EchoTool:
    """A tool that returns its `text`; `fail` raises a ToolError, `break` a bug, `wait` sleeps for ever."""

    spec: ToolSpec = field(default_factory=lambda: ToolSpec("echo", "Say it back.", '{"type":"object"}'))
    kind: ToolKind = "execute"
    ran: list[str] = field(default_factory=list)

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        return ToolView(f"Echo {arguments.get('text', '')}")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        await trio.lowlevel.checkpoint()
        return ToolRequest("execute", str(arguments.get("text", "")))

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        text = str(arguments.get("text", ""))
        self.ran.append(text)
        if text == "wait":
            await trio.sleep_forever()
        if text == "fail":
            raise ToolError("that did not work")
        if text == "break":
            raise RuntimeError("a secret detail")
        await trio.lowlevel.checkpoint()
        return ToolOutcome(text)


def script(*replies: object, **more: object) -> ScriptedProvider:
    """A provider that answers in this order and remembers the requests."""
    return ScriptedProvider(parse_script({"replies": list(replies), **more}), keep_requests=1000)


def call(text: str, **more: object) -> dict[str, object]:
    """A scripted call of the echo tool."""
    return {"name": "echo", "arguments": {"text": text}, **more}


async def no_local_answer(talk: Conversation, text: str) -> str | None:
    await trio.lowlevel.checkpoint()
    return "a local answer" if text == "/local" else None


def make_setup(
    provider: Provider,
    profile: Profile | None = None,
    tools: Sequence[Tool] = (),
    window: int | None = 32000,
    *,
    prompt_tools: bool = False,
) -> Setup:
    """A setup around a provider."""

    async def get() -> Provider:
        await trio.lowlevel.checkpoint()
        return provider

    return Setup(
        profile=profile or Profile(),
        route=Route("scripted", "test-model", window),
        tools={tool.spec.name: tool for tool in tools},
        system=("You are a test.",),
        provider=get,
        kind="scripted",
        prompt_tools=prompt_tools,
        now=lambda: TIME,
    )


async def make_session(
    provider: Provider,
    *,
    profile: Profile | None = None,
    tools: Sequence[Tool] = (),
    store: Store | None = None,
    window: int | None = 32000,
    prompt_tools: bool = False,
) -> tuple[Session, RecordingClient, Store]:
    """A new session over a memory store."""
    kept = store or MemoryStore()
    await kept.create_session(SessionRecord("s", "/project", TIME, TIME))
    client = RecordingClient()
    setup = make_setup(provider, profile, tools, window, prompt_tools=prompt_tools)
    talk = Conversation("s", Path("/project"), setup, kept, client, local=no_local_answer)
    return Session(talk), client, kept


async def ask(session: Session, text: str) -> str:
    """One prompt to its end; its stop reason."""
    return await session.run(session.submit(prompt(text)))


def prompt(text: str) -> Prompt:
    """A text prompt."""
    return Prompt(text, ({"type": "text", "text": text},))
