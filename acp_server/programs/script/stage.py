"""The state of a play, and the moves that several steps share: start the agent, take frames, answer, fail."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

from acp_server.programs.script.agent import Agent, Frame, Stray, Trace, start
from acp_server.programs.script.match import Difference, compare
from acp_server.programs.script.steps import Awaited, filled, filled_pattern


@dataclass(frozen=True, slots=True)
class Options:
    """How to play. timeout: seconds for a step that states none. cwd: `$CWD`, None for a new folder.

    env: added to our own. grace: seconds for the agent to end by itself. trace: is told each line.
    """

    command: tuple[str, ...]
    timeout: float = 10.0
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    grace: float = 2.0
    trace: Trace = lambda line: None


class Failed(Exception):
    """The first difference. problem: a sentence. difference, frame: where and in what, if there is one."""

    def __init__(self, problem: str, *, difference: Difference | None = None, frame: object = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.difference = difference
        self.frame = frame


@dataclass(slots=True)
class Stage:
    """What is true while a script is played. said: (session, text) of each agent_message_chunk."""

    options: Options
    cwd: Path
    nursery: trio.Nursery
    variables: dict[str, object]
    environment: dict[str, str]
    agent: Agent | None = None
    ignored: list[Awaited] = field(default_factory=list)
    optional: list[Awaited] = field(default_factory=list)
    said: list[tuple[object, str]] = field(default_factory=list)

    async def running(self) -> Agent:
        """The agent, started at the first step that needs it."""
        if self.agent is None:
            await self.start()
        assert self.agent is not None
        return self.agent

    async def start(self) -> None:
        """Start it (anew)."""
        command = self.options.command
        try:
            self.agent = await start(command, os.environ | self.environment, self.options.trace)
        except OSError as error:
            raise Failed(f"the agent {command[0]!r} cannot be started: {error.strerror}") from error
        self.nursery.start_soon(self.agent.listen)

    def fill(self, message: object) -> object:
        """A message with its variables filled in."""
        return self._filling(filled, message)

    def fill_pattern(self, pattern: object) -> object:
        """A pattern with its variables filled in."""
        return self._filling(filled_pattern, pattern)

    def _filling(self, fill: Callable[[object, Mapping[str, object]], object], value: object) -> object:
        try:
            return fill(value, self.variables)
        except ValueError as error:
            raise Failed(str(error)) from error

    async def send(self, data: bytes) -> None:
        """Bytes to the agent's stdin."""
        agent = await self.running()
        seconds = self.options.timeout
        try:
            with trio.fail_after(seconds):
                await agent.send(data)
        except trio.TooSlowError:
            raise Failed(f"the agent did not read {len(data):,} bytes within {seconds:g} s") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise Failed(f"the agent's stdin is closed{await self.epitaph()}") from None

    async def next_frame(self) -> object:
        """The next frame that is not ignored, left in its place. Raises Failed: the end, a stray line."""
        agent = await self.running()
        while True:
            item = await agent.inbox.peek()
            if item is None:
                raise Failed(f"the agent's stdout is at its end{await self.epitaph()}")
            value = value_of(item)
            found = self.first_match(self.ignored, value)
            if found is None:
                return value
            await self.accept(found[0], found[1], value)

    def first_match(
        self, choices: Sequence[Awaited], value: object
    ) -> tuple[Awaited, dict[str, object]] | None:
        """The first of the choices that the frame matches, and what it captured."""
        for choice in choices:
            result = compare(self.fill_pattern(choice.pattern), value)
            if not isinstance(result, Difference):
                return choice, result
        return None

    async def accept(self, awaited: Awaited, captured: Mapping[str, object], value: object) -> None:
        """Take the frame out, keep what was captured, answer it."""
        self.skip(value)
        self.variables.update(captured)
        if awaited.answer is None:
            return
        if not isinstance(value, dict) or "id" not in value:
            raise Failed("there is nothing to answer: the frame has no id", frame=value)
        key = "error" if awaited.answer.is_error else "result"
        reply = {"jsonrpc": "2.0", "id": value["id"], key: self.fill(awaited.answer.value)}
        await self.send(encode(reply))

    def skip(self, value: object) -> None:
        """Take the frame out; what it says is kept for a `text` step."""
        assert self.agent is not None
        self.agent.inbox.take()
        match value:
            case {
                "params": {
                    "sessionId": session,
                    "update": {"sessionUpdate": "agent_message_chunk", "content": {"text": str() as text}},
                }
            }:
                self.said.append((session, text))

    async def epitaph(self) -> str:
        """How the agent ended, if it has (or is about to)."""
        assert self.agent is not None
        with trio.move_on_after(min(1.0, self.options.grace)):
            await self.agent.wait()
        status = self.agent.status
        return " and it still runs" if status is None else f" (it ended with status {status})"


def value_of(item: Frame | Stray) -> object:
    """The frame's value. Raises Failed for a stray line."""
    if isinstance(item, Stray):
        raise Failed(f"the agent's stdout holds a line that is no frame: {item.problem}", frame=item.text)
    return item.value


def encode(message: object) -> bytes:
    """A message as a line."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair has no UTF-8; as an escape it can be sent.
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"
