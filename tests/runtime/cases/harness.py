"""Plays a case through a session: its history out of a store, its provider from a script.

Says nothing of what is right; each test does. Rows become the steps that a finished turn leaves behind.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, restore
from runtime.history.rows.estimate import estimate_history_tokens, estimate_tool_schemas
from runtime.history.rows.pairs import pairs_ok
from runtime.ports import Tool, ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.values.events import Noticed, ToolKind, UsageChanged
from runtime.values.model import ModelRequest
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row, ToolSpec
from runtime.values.stored import SessionRecord, Store, StoredEntry
from schemas.transcript import CallRecord, EndStep, PromptStep, ReplyStep, Step, ToolStep
from tests.runtime.history.case_data import cases, expand, generated, row
from tests.support.fakes import TIME, RecordingClient, ask, make_setup, script


def given(case_id: str) -> list[dict[str, Any]]:
    """The raw rows of a case, generated ones made."""
    source = cases()[case_id]["input"]
    spec = source.get("history_gen")
    if spec is None:
        return list(source.get("history", ()))
    return plain(spec) if spec["gen"] == "plain_turns" else generated(spec)


def plain(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """`history_gen` of kind plain_turns: a user and an assistant row a turn."""
    size = spec["chars"]
    rows = []
    for turn in range(1, spec["turns"] + 1):
        rows.append({"role": "user", "turn": turn, "text": f"ask {turn} ".ljust(size, "q")})
        rows.append({"role": "assistant", "turn": turn, "text": f"answer {turn} ".ljust(size, "a")})
    return rows


def turns(case_id: str) -> list[list[Row]]:
    """The rows of each turn, oldest first."""
    values = [value for value in given(case_id) if value["role"] != "system"]
    return [[row(value) for value in group] for _, group in groupby(values, key=lambda value: value["turn"])]


def system(case_id: str) -> tuple[str, ...]:
    """The system texts of a case."""
    return tuple(expand(value["text"]) for value in given(case_id) if value["role"] == "system")


def prompts(case_id: str) -> list[str]:
    """The texts of the prompts that a case sends, in order."""
    sent = (step["send"] for step in cases()[case_id]["input"]["wire"] if "send" in step)
    asked = (message["params"]["prompt"] for message in sent if message.get("method") == "session/prompt")
    return ["".join(expand(block["text"]) for block in blocks if "text" in block) for blocks in asked]


def provider(case_id: str) -> ScriptedProvider:
    """The case's replies as a scripted provider."""
    return script(*map(reply, cases()[case_id]["input"]["provider"]))


def reply(value: dict[str, Any]) -> dict[str, Any]:
    """One reply of a case as the scripted provider writes it."""
    if value["status"] != 200:
        error = value["body"]["error"]
        told = {"status": value["status"], "message": error["message"]}
        return {"error": told | {key: error[key] for key in ("code",) if key in error}}
    said = value["reply"]
    calls = [
        {"name": one["name"], "arguments": json.dumps(one["args"]), "id": one["id"]}
        for one in said.get("calls", ())
    ]
    out: dict[str, Any] = {"text": said.get("text", ""), "calls": calls}
    if "usage" in said:
        out["usage"] = said["usage"]
    return out


async def write_turns(store: Store, rows_of_turns: Sequence[Sequence[Row]]) -> None:
    """Leave finished turns in the store, as a session would have."""
    for number, rows in enumerate(rows_of_turns, 1):
        await store.append("s", list(entries(f"turn{number}", rows)))


def entries(turn_id: str, rows: Sequence[Row]) -> Iterator[StoredEntry]:
    """A finished turn as it is stored."""
    text = rows[0].content
    block: dict[str, object] = {"type": "text", "text": text}
    prompt = PromptStep(message_id=f"m-{turn_id}", text=text, blocks=(block,))
    end = EndStep(outcome="done", stop_reason="end_turn")
    keyed: list[tuple[str, Step]] = [("prompt", prompt), *steps(turn_id, rows[1:]), ("end", end)]
    for key, step in keyed:
        payload = step.model_dump_json().encode()
        yield StoredEntry(turn_id, f"turn:{turn_id}:{key}", getattr(step, "kind", ""), payload)


def steps(turn_id: str, rows: Sequence[Row]) -> Iterator[tuple[str, Step]]:
    """The steps behind a turn's prompt with the ends of their keys. The n-th reply is iteration n."""
    iteration = -1
    ids: dict[str, str] = {}
    for one in rows:
        if one.role == "tool":
            call_id = ids[one.tool_call_id or ""]
            step = ToolStep(iteration=iteration, call_id=call_id, status="completed", text=one.content)
            yield f"iter:{iteration}:tool:{call_id}", step
            continue
        iteration += 1
        ids = {call.id: f"{turn_id}-{iteration}-{call.id}" for call in one.tool_calls}
        calls = [
            CallRecord(call_id=ids[call.id], id=call.id, name=call.name, arguments=call.arguments)
            for call in one.tool_calls
        ]
        message_id = f"a-{turn_id}-{iteration}"
        yield (
            f"iter:{iteration}",
            ReplyStep(iteration=iteration, message_id=message_id, text=one.content, calls=tuple(calls)),
        )


@dataclass(slots=True)
class FixedTool:
    """A tool that answers the same each time and remembers what it was asked."""

    spec: ToolSpec
    text: str
    kind: ToolKind = "other"
    ran: list[Mapping[str, object]] = field(default_factory=list)

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        return ToolView(self.spec.name)

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        await trio.lowlevel.checkpoint()
        return ToolRequest("other", self.spec.name)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        await trio.lowlevel.checkpoint()
        self.ran.append(arguments)
        return ToolOutcome(self.text)


def fixed_tool(name: str, text: str, description: str = "A tool.") -> FixedTool:
    """A tool of that name."""
    return FixedTool(ToolSpec(name, description, '{"type":"object"}'), text)


@dataclass(slots=True)
class Played:
    """A session with a case's history in it, and what can be seen of it from outside."""

    session: Session
    client: RecordingClient
    store: Store
    models: list[ScriptedProvider]

    def serve(self, *replies: object) -> None:
        """From now on another script answers."""
        self.models.append(script(*replies))

    async def ask(self, text: str) -> str:
        """A prompt to its end; its stop reason. Raises what the turn raised."""
        return await ask(self.session, text)

    @property
    def requests(self) -> list[ModelRequest]:
        """All requests the provider got, each with whole pairs."""
        requests = [request for model in self.models for request in model.requests]
        assert all(pairs_ok(request.rows()) for request in requests)
        return requests

    @property
    def rows(self) -> list[Row]:
        """The rows of the last request."""
        return self.requests[-1].rows()

    def notices(self) -> list[Noticed]:
        """What the client was told beside the conversation."""
        return [event for event in self.client.events if isinstance(event, Noticed)]

    def usage(self) -> list[UsageChanged]:
        """All moves of the meter."""
        return [event for event in self.client.events if isinstance(event, UsageChanged)]


async def play(
    case_id: str,
    *replies: object,
    window: int | None = None,
    profile: Profile | None = None,
    tools: Sequence[Tool] = (),
    max_output: int | None = None,
    store: Store | None = None,
) -> Played:
    """The session of a case, loaded. replies: in place of the case's own. store: one written already."""
    kept = store or MemoryStore()
    if store is None:
        await kept.create_session(SessionRecord("s", "/project", TIME, TIME))
        await write_turns(kept, turns(case_id))
    models = [script(*replies) if replies else provider(case_id)]
    client = RecordingClient()

    async def serving() -> ScriptedProvider:
        await trio.lowlevel.checkpoint()
        return models[-1]

    setup = replace(
        make_setup(models[0], profile, tools),
        provider=serving,
        route=Route("scripted", "test-model", window, max_output),
        system=system(case_id) or ("You are a test.",),
    )
    record = await kept.session("s")
    assert record is not None
    talk = Conversation("s", Path("/project"), setup, kept, client, state=read_state(record.state))
    await restore(talk)
    return Played(Session(talk), client, kept, models)


def tokens(request: ModelRequest) -> int:
    """Our estimate of a whole request."""
    return estimate_history_tokens(request.rows()) + estimate_tool_schemas(request.tools)
