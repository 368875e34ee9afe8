"""A session whose turn runs many tool rounds under a context trimmer, and its replay."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, restore
from runtime.ports import ContextTrimmer, Tool, ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.replay.stored_session import replay_session
from runtime.session.session import Session
from runtime.setup.session_setup import Summariser
from runtime.store.memory import MemoryStore
from runtime.trimming.catalog import parse_descriptor, trimmer_of
from runtime.values.events import ToolKind
from runtime.values.model import ModelRequest
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row, ToolSpec
from runtime.values.stored import SessionRecord, Store
from tests.support.fakes import TIME, RecordingClient, make_setup, script


@dataclass(slots=True)
class LookTool:
    """A tool that only looks: it gives `size` characters, numbered."""

    size: int = 400
    spec: ToolSpec = field(default_factory=lambda: ToolSpec("look", "Look.", '{"type":"object"}'))
    kind: ToolKind = "read"
    looks: int = 0

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        return ToolView("Look")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        await trio.lowlevel.checkpoint()
        return ToolRequest("read", "look")

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        await trio.lowlevel.checkpoint()
        self.looks += 1
        return ToolOutcome(f"result {self.looks} ".ljust(self.size, "r"))


def looking(rounds: int, *, same_id: bool = False, **more: object) -> list[dict[str, object]]:
    """Replies that look so often, then say `done`."""
    call: dict[str, object] = {"name": "look", "arguments": {}}
    if same_id:
        call["id"] = "c1"
    return [{"calls": [call], "repeat": rounds, **more}, {"text": "done"}]


def trimmer(descriptor: str, model: ScriptedProvider | None = None, slack: float = 0.0) -> ContextTrimmer:
    """The trimmer of a descriptor; `model` summarises."""

    async def get() -> ScriptedProvider:
        await trio.lowlevel.checkpoint()
        assert model is not None
        return model

    summarise = None if model is None else Summariser(get, Route("scripted", "small", 32_000))
    return trimmer_of(parse_descriptor(descriptor), slack, summarise)


@dataclass(slots=True)
class Rig:
    session: Session
    client: RecordingClient
    store: Store
    model: ScriptedProvider

    @property
    def requests(self) -> list[ModelRequest]:
        return self.model.requests


async def rig(
    trimmer: ContextTrimmer | None,
    *replies: object,
    profile: Profile | None = None,
    tools: Sequence[Tool] = (),
    window: int = 8000,
    prompt_tools: bool = False,
    store: Store | None = None,
    trim: bool = True,
) -> Rig:
    """A session with that trimmer; over a store that has it already, restored. trim: what is too much goes
    at once.
    """
    model = script(*replies)
    profile = profile or Profile(max_tool_iterations=250)
    setup = make_setup(model, profile, tools or [LookTool()], window, prompt_tools=prompt_tools)
    setup = replace(setup, trimmer=trimmer)
    kept, client = store or MemoryStore(), RecordingClient()
    if store is None:
        await kept.create_session(SessionRecord("s", "/project", TIME, TIME))
    record = await kept.session("s")
    assert record is not None
    talk = Conversation("s", Path("/project"), setup, kept, client, state=read_state(record.state))
    if store is not None:
        await restore(talk, trim=trim)
    return Rig(Session(talk), client, kept, model)


async def replayed(store: Store) -> list[ModelRequest]:
    """All requests, made again from the steps; raises Difference."""
    async with aclosing(replay_session(store, "s")) as made:
        return [one.call.request async for one in made if one.call is not None]


def sent(request: ModelRequest) -> tuple[object, ...]:
    """All of a request, however it is cut."""
    return request.model, request.rows(), request.tools, request.max_output_tokens


def history_rows(rig: Rig) -> list[list[Row]]:
    """The rows of all turns."""
    return [list(turn.rows) for turn in rig.session.conversation.keeper.history.turns]
