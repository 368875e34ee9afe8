"""What a client does with a session, on top of `wire`: greet, open, prompt, cancel, load. Checks nothing."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.wire import Agent, Refused
from tests.support.wire_order import Json

READS_FILES: Json = {"fs": {"readTextFile": True}}
"""The capabilities of an editor that lends its buffers."""


async def greet(agent: Agent, capabilities: Json | None = None) -> Json:
    """`initialize`; returns its result."""
    return await agent.call(
        "initialize", {"protocolVersion": 1, "clientCapabilities": dict(capabilities or {})}
    )


async def refused(agent: Agent, method: str, params: object, code: int) -> Refused:
    """Send a request that is wrong; it must be refused with this code."""
    frame = await agent.answer(await agent.request(method, params, valid=False))
    assert frame.get("error", {}).get("code") == code, (method, params, frame)
    return Refused(frame["error"])


def line_of(frame: Json, end: bytes = b"\n", *, ascii_only: bool = True) -> bytes:
    """The frame as a line."""
    return json.dumps(frame, ensure_ascii=ascii_only).encode() + end


async def drip(agent: Agent, data: bytes, *frames: Json) -> None:
    """Send bytes one by one, each in a write of its own. frames: the messages in them."""
    await agent.send_bytes(b"", *frames)
    for at in range(len(data)):
        await agent.send_bytes(data[at : at + 1])


def text_block(text: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": text}


def text_of(updates: Iterable[Mapping[str, object]], kind: str = "agent_message_chunk") -> str:
    """The text of all chunks of a kind, joined."""
    texts = []
    for update in updates:
        content = update.get("content")
        if update["sessionUpdate"] == kind and isinstance(content, dict):
            texts.append(str(content.get("text", "")))
    return "".join(texts)


def kinds(updates: Iterable[Mapping[str, object]]) -> list[str]:
    """The kinds of the updates, in order."""
    return [str(update["sessionUpdate"]) for update in updates]


def of_kind(updates: Iterable[Json], *wanted: str) -> list[Json]:
    """The updates of these kinds."""
    return [update for update in updates if update["sessionUpdate"] in wanted]


@dataclass(frozen=True)
class Turn:
    """A prompt and what came of it. Either stop or error is set."""

    updates: list[Json]
    stop: str = ""
    error: Refused | None = None

    @property
    def text(self) -> str:
        """The answer as the person reads it."""
        return text_of(self.updates)

    @property
    def asides(self) -> str:
        """What stands beside the answer: thoughts and lines for the person."""
        return text_of(self.updates, "agent_thought_chunk")

    @property
    def calls(self) -> list[Json]:
        """Each tool call in its last state: what `tool_call` said, with all later updates laid over it."""
        calls: dict[str, Json] = {}
        for update in of_kind(self.updates, "tool_call", "tool_call_update"):
            calls.setdefault(update["toolCallId"], {}).update(update)
        return list(calls.values())


class Talk:
    """One session on one connection."""

    def __init__(self, agent: Agent, session_id: str, cwd: Path) -> None:
        self.agent = agent
        self.session_id = session_id
        self.cwd = cwd

    @classmethod
    async def new(cls, agent: Agent, cwd: Path, servers: Sequence[Json] = ()) -> "Talk":
        """`session/new`."""
        result = await agent.call("session/new", {"cwd": str(cwd), "mcpServers": list(servers)})
        return cls(agent, result["sessionId"], cwd)

    async def ask(self, prompt: str | Sequence[Json]) -> int:
        """Send a prompt; returns the request's id."""
        blocks = [text_block(prompt)] if isinstance(prompt, str) else list(prompt)
        return await self.agent.request("session/prompt", {"sessionId": self.session_id, "prompt": blocks})

    async def turn(self, prompt: str | Sequence[Json]) -> Turn:
        """A prompt and its end, an error included. For one prompt at a time."""
        since = len(self.agent.frames)
        return await self.end_of(await self.ask(prompt), since)

    async def end_of(self, request_id: int, since: int = 0) -> Turn:
        """The end of a prompt that was sent; the updates are those from frame `since` on."""
        frame = await self.agent.answer(request_id)
        updates = self.updates(since, self.agent.frames.index(frame))
        if "error" in frame:
            return Turn(updates, error=Refused(frame["error"]))
        return Turn(updates, stop=frame["result"]["stopReason"])

    async def cancel(self) -> None:
        """`session/cancel`."""
        await self.agent.notify("session/cancel", {"sessionId": self.session_id})

    async def see(self, kind: str, *, since: int = 0, **facts: object) -> Json:
        """Wait for an update of a kind in which these facts stand; returns it."""

        def fits(frame: Json) -> bool:
            update = self._update(frame)
            if update is None or update["sessionUpdate"] != kind:
                return False
            return all(update.get(name) == value for name, value in facts.items())

        update: Json = (await self.agent.until(fits, since=since))["params"]["update"]
        return update

    async def load(self, agent: Agent) -> list[Json]:
        """`session/load` on a connection, which is this session's from now on; returns the replay."""
        self.agent = agent
        since = len(agent.frames)
        request_id = await agent.request(
            "session/load", {"sessionId": self.session_id, "cwd": str(self.cwd), "mcpServers": []}
        )
        frame = await agent.answer(request_id)
        if "error" in frame:
            raise Refused(frame["error"])
        return self.updates(since, agent.frames.index(frame))

    def updates(self, since: int = 0, until: int | None = None) -> list[Json]:
        """This session's updates among the frames with these numbers."""
        found = (self._update(frame) for frame in self.agent.frames[since:until])
        return [update for update in found if update is not None]

    def _update(self, frame: Json) -> Json | None:
        if frame.get("method") != "session/update" or frame["params"]["sessionId"] != self.session_id:
            return None
        update: Json = frame["params"]["update"]
        return update


def replayed_turns(replay: Sequence[Json]) -> list[Turn]:
    """A replay cut at the prompts; the user's chunks stand first in each."""
    turns: list[Turn] = []
    last = ""
    for update in replay:
        if update["sessionUpdate"] == "user_message_chunk" and update["messageId"] != last:
            last = update["messageId"]
            turns.append(Turn([]))
        if turns:
            turns[-1].updates.append(update)
    return turns
