"""What a client of ACP v2 does with a session, on top of `wire`: greet, open, prompt, cancel, resume."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.wire import Agent, Refused
from tests.support.wire_order import Json
from tests.support.wire_talk import text_block, text_of

INFO: Json = {"name": "tests", "version": "1"}


async def greet(agent: Agent, capabilities: Json | None = None, *, version: int = 2) -> Json:
    """`initialize`; returns its result."""
    params = {"protocolVersion": version, "info": INFO, "capabilities": dict(capabilities or {})}
    return await agent.call("initialize", params)


@dataclass(frozen=True)
class Turn:
    """A prompt that was taken and what came of it, the last update being the one that ended it."""

    message_id: str
    updates: list[Json]

    @property
    def end(self) -> Json:
        """The update that says that the session is idle."""
        return self.updates[-1]

    @property
    def stop(self) -> str:
        """Why the turn ended."""
        return str(self.end["stopReason"])

    @property
    def text(self) -> str:
        """The answer as the person reads it."""
        return text_of(self.updates)

    @property
    def states(self) -> list[str]:
        """The states the session went through."""
        return [update["state"] for update in self.of("state_update")]

    @property
    def calls(self) -> list[Json]:
        """Each tool call in its last state."""
        calls: dict[str, Json] = {}
        for update in self.of("tool_call_update"):
            calls.setdefault(update["toolCallId"], {}).update(update)
        return list(calls.values())

    def of(self, kind: str) -> list[Json]:
        """The updates of a kind."""
        return [update for update in self.updates if update["sessionUpdate"] == kind]


class Talk:
    """One session on one connection."""

    def __init__(self, agent: Agent, session_id: str, cwd: Path) -> None:
        self.agent = agent
        self.session_id = session_id
        self.cwd = cwd

    @classmethod
    async def new(cls, agent: Agent, cwd: Path) -> "Talk":
        """`session/new`."""
        result = await agent.call("session/new", {"cwd": str(cwd)})
        return cls(agent, result["sessionId"], cwd)

    async def ask(self, prompt: str | Sequence[Json]) -> int:
        """Send a prompt; returns the request's id."""
        blocks = [text_block(prompt)] if isinstance(prompt, str) else list(prompt)
        return await self.agent.request("session/prompt", {"sessionId": self.session_id, "prompt": blocks})

    async def turn(self, prompt: str | Sequence[Json]) -> Turn:
        """A prompt that is taken, to its end. Raises Refused when it is not."""
        since = len(self.agent.frames)
        return await self.end_of(await self.ask(prompt), since)

    async def end_of(self, request_id: int, since: int = 0) -> Turn:
        """The end of the work that takes a prompt which was sent; the updates from frame `since` on."""
        result = await self.agent.result(request_id)
        idle = await self.agent.until(self.says("state_update", state="idle"), since=since)
        until = self.agent.frames.index(idle, since) + 1
        return Turn(result["messageId"], self.updates(since, until))

    async def cancel(self) -> None:
        """`session/cancel`."""
        await self.agent.notify("session/cancel", {"sessionId": self.session_id})

    async def see(self, kind: str, *, since: int = 0, **facts: object) -> Json:
        """Wait for an update of a kind in which these facts stand; returns it."""
        frame = await self.agent.until(self.says(kind, **facts), since=since)
        update: Json = frame["params"]["update"]
        return update

    async def resume(self, agent: Agent, **more: object) -> list[Json]:
        """`session/resume` on a connection, the session's from now on; what came before the answer."""
        self.agent = agent
        since = len(agent.frames)
        params = {"sessionId": self.session_id, "cwd": str(self.cwd), **more}
        frame = await agent.answer(await agent.request("session/resume", params))
        if "error" in frame:
            raise Refused(frame["error"])
        return self.updates(since, agent.frames.index(frame, since))

    def updates(self, since: int = 0, until: int | None = None) -> list[Json]:
        """This session's updates among the frames with these numbers."""
        found = (self._update(frame) for frame in self.agent.frames[since:until])
        return [update for update in found if update is not None]

    def says(self, kind: str, **facts: object) -> "_Says":
        """A condition for `Agent.until`."""
        return _Says(self, kind, facts)

    def _update(self, frame: Json) -> Json | None:
        if frame.get("method") != "session/update" or frame["params"]["sessionId"] != self.session_id:
            return None
        update: Json = frame["params"]["update"]
        return update


@dataclass(frozen=True)
class _Says:
    talk: Talk
    kind: str
    facts: Json

    def __call__(self, frame: Json) -> bool:
        update = self.talk._update(frame)
        if update is None or update["sessionUpdate"] != self.kind:
            return False
        return all(update.get(name) == value for name, value in self.facts.items())
