"""A client over a real server process. Every message of both sides is checked, no test can leave that out.

Checked on each line: one JSON object in UTF-8, below the smallest limit of known clients, valid by the
official schema (`acp_schema`), at a time when it may come (`wire_order`), and no call that this client does
not answer. On leaving: nothing else on stdout, exit status 0, no traceback on stderr. Every wait is bounded.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.support.acp_schema import Conformance, Edition, NonConformant
from tests.support.wire_order import Json, Order
from tests.support.wire_order_v2 import OrderV2
from tests.warm import Forker, WarmProcess

PATIENCE = 20.0
"""Seconds that any wait may take on a machine under load."""
LONGEST_LINE = 10 * 1024 * 1024

Process = trio.Process | WarmProcess
Handler = Callable[[Json], Awaitable[object]]
"""Answers a call of the agent: params to result. Raise Refused for an error answer."""


class Refused(Exception):
    """A call was answered with an error. Also raised by handlers to answer so."""

    def __init__(self, error: Json) -> None:
        super().__init__(json.dumps(error, ensure_ascii=False))
        self.error = error
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Json = error.get("data") or {}


class Ended(Exception):
    """The agent closed its output, or its input is broken."""


class Inbox:
    """All that came from a server, in order, each line checked; and the waiting for more."""

    def __init__(self, *, trim_exception: bool, edition: Edition = "schema-v1") -> None:
        self.frames: list[Json] = []
        self.ended = trio.Event()
        self.conformance = Conformance(trim_exception=trim_exception, edition=edition)
        self.order = OrderV2() if edition == "schema-v2" else Order()
        self.torn_is_fine = False
        self._fault: BaseException | None = None
        self._news = trio.lowlevel.ParkingLot()
        self._reading = trio.Event()
        self._reading.set()

    async def until(self, wanted: Callable[[Json], object], since: int) -> Json:
        """The first message that fits, of those from number `since` on; None to come: Ended."""
        with trio.fail_after(PATIENCE):
            while True:
                self.check()
                for frame in self.frames[since:]:
                    if wanted(frame):
                        return frame
                since = max(since, len(self.frames))
                if self.ended.is_set():
                    raise Ended("the agent ended without such a message")
                await self._news.park()

    def check(self) -> None:
        """Raise what was wrong with anything that came so far."""
        if self._fault is not None:
            raise self._fault

    def pause(self) -> None:
        """Read no more (but for what is being read at this moment): the pipe fills up."""
        self._reading = trio.Event()

    def unpause(self) -> None:
        """Read again."""
        self._reading.set()

    async def read(self, stream: trio.abc.ReceiveStream, called: Callable[[Json], None]) -> None:
        """Take in lines to the end. called: gets each call of the agent that wants an answer."""
        held = b""
        try:
            while data := await self._some(stream):
                *lines, held = (held + data).split(b"\n") if b"\n" in data else [held + data]
                for line in lines:
                    self._take(line, called)
            if held and not self.torn_is_fine:
                raise AssertionError(f"stray bytes at the end of stdout: {held[:200]!r}")
        except (AssertionError, ValueError, KeyError, TypeError) as error:
            self._fault = error
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            pass  # the test closed it
        finally:
            self.ended.set()
            self._news.unpark_all()

    async def _some(self, stream: trio.abc.ReceiveStream) -> bytes:
        await self._reading.wait()
        return bytes(await stream.receive_some(1 << 18))

    def _take(self, line: bytes, called: Callable[[Json], None]) -> None:
        if len(line) > LONGEST_LINE:
            raise AssertionError(f"a line of {len(line)} bytes")
        try:
            frame = self.conformance.line("agent", line.decode("utf-8"))
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"{error!r} in the line {line[:2000]!r}") from error
        self.order.came(frame)
        self.frames.append(frame)
        self._news.unpark_all()
        if "method" in frame and "id" in frame:
            called(frame)


class Agent:
    """One server process as its client sees it. `frames`: all that came, in order."""

    def __init__(self, process: Process, inbox: Inbox, log: Path) -> None:
        self.process = process
        self.inbox = inbox
        self.frames = inbox.frames
        self._log = log
        self._counter = 100

    async def send(self, frame: Mapping[str, Any], *, valid: bool = True) -> None:
        """Send a message. valid=False: it is wrong on purpose, so any answer but a result is fine."""
        await self.send_bytes(encoded(frame) + b"\n", frame, valid=valid)

    async def send_bytes(self, data: bytes, *says: Mapping[str, Any], valid: bool = True) -> None:
        """Send raw bytes. says: the messages that are in them, as far as they may be answered."""
        for frame in says:
            self.inbox.order.sent(frame)
            with contextlib.nullcontext() if valid else contextlib.suppress(NonConformant):
                self.inbox.conformance.frame("client", frame)
        assert self.process.stdin is not None  # piped below
        try:
            with trio.fail_after(PATIENCE):
                await self.process.stdin.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Ended("its input is closed") from error

    async def request(self, method: str, params: object, *, valid: bool = True) -> int:
        """Send a request; returns its id."""
        self._counter += 1
        frame = {"jsonrpc": "2.0", "id": self._counter, "method": method, "params": params}
        await self.send(frame, valid=valid)
        return self._counter

    async def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def until(self, wanted: Callable[[Json], object], *, since: int = 0) -> Json:
        """The first message that fits, of those from number `since` on. Raises Ended if none can come."""
        return await self.inbox.until(wanted, since)

    async def answer(self, request_id: object) -> Json:
        """The whole response to a request. Raises Ended when there will be none."""
        key = json.dumps(request_id)
        return await self.until(lambda frame: "method" not in frame and json.dumps(frame["id"]) == key)

    async def result(self, request_id: object) -> Json:
        """The result of a request. Raises Refused for an error answer."""
        frame = await self.answer(request_id)
        if "error" in frame:
            raise Refused(frame["error"])
        result: Json = frame["result"]
        return result

    async def call(self, method: str, params: object, *, valid: bool = True) -> Json:
        """Send a request and wait for its result."""
        return await self.result(await self.request(method, params, valid=valid))

    def stderr(self) -> str:
        """What it logged so far."""
        return self._log.read_text("utf-8", "replace")

    async def close(self, *, seconds: float = PATIENCE) -> int:
        """Close its input, as an editor does, and wait for its end. Returns the exit status."""
        if self.process.stdin is not None:
            await self.process.stdin.aclose()
        return await self.wait(seconds=seconds)

    async def wait(self, *, seconds: float = PATIENCE) -> int:
        """Wait for its end and for the last of its output. Returns the exit status."""
        with trio.fail_after(seconds):
            status = await self.process.wait()
            await self.inbox.ended.wait()
        self.inbox.check()
        return status

    async def kill(self) -> None:
        """As if the power had gone: what it was writing may be torn."""
        self.inbox.torn_is_fine = True
        self.process.send_signal(signal.SIGKILL)
        await self.wait()


class Answering:
    """Answers the agent's calls in tasks of their own, and fails the test at one that was not offered."""

    def __init__(self, agent: Agent, handlers: Mapping[str, Handler], nursery: trio.Nursery) -> None:
        self._agent = agent
        self._handlers = handlers
        self._nursery = nursery

    def called(self, frame: Json) -> None:
        """A call came."""
        if frame["method"] not in self._handlers:
            raise AssertionError(f"{frame['method']} was called, which this client does not offer")
        self._nursery.start_soon(self._serve, frame)

    async def _serve(self, frame: Json) -> None:
        reply: Json = {"jsonrpc": "2.0", "id": frame["id"]}
        try:
            reply["result"] = await self._handlers[frame["method"]](frame["params"])
        except Refused as refused:
            reply["error"] = refused.error
        # What a handler gives is the test's choice: clients that answer nonsense are part of the trouble.
        with contextlib.suppress(Ended):
            await self._agent.send(reply, valid=False)


def encoded(frame: Mapping[str, Any]) -> bytes:
    """The message as UTF-8; half a surrogate pair in it is escaped, as JavaScript sends it."""
    try:
        return json.dumps(frame, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(frame).encode()


async def never(params: Json) -> object:
    """A handler of a client that does not answer."""
    await trio.sleep_forever()
    raise AssertionError


@asynccontextmanager
async def start_agent(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    handlers: Mapping[str, Handler] | None = None,
    trim_exception: bool = True,
    edition: Edition = "schema-v1",
    forker: Forker | None = None,
) -> AsyncIterator[Agent]:
    """Start a server; on leaving, end it as an editor does and check how it ended.

    A process that the test has seen end itself is not judged again. log: where its stderr goes, added to.
    forker: copies a process instead; of the command only the arguments behind `-m acp_server` count.
    """
    process = await _spawn(command, cwd, env, log, forker)
    agent = Agent(process, Inbox(trim_exception=trim_exception, edition=edition), log)
    try:
        async with trio.open_nursery() as nursery:
            assert process.stdout is not None  # piped above
            answering = Answering(agent, handlers or {}, nursery)
            nursery.start_soon(agent.inbox.read, process.stdout, answering.called)
            yield agent
            agent.inbox.check()
            if process.returncode is None:
                assert await agent.close() == 0, agent.stderr()
            nursery.cancel_scope.cancel()
        assert "Traceback" not in agent.stderr(), agent.stderr()
    finally:
        await _clear_away(process)


async def _spawn(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path, forker: Forker | None
) -> Process:
    with log.open("ab") as stderr:
        if forker is not None:
            return forker.start(*command[3:], cwd=cwd, env=env, stderr=stderr.fileno())
        return await trio.lowlevel.open_process(
            list(command),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )


async def _clear_away(process: Process) -> None:
    with trio.move_on_after(PATIENCE, shield=True):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        await process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                await trio.aclose_forcefully(stream)
