"""An MCP server as a child process: lines of JSON over its stdin and stdout, its stderr kept for errors.

Not the SDK's own transport: this one ends a child and all of its children within a second, drains stderr,
bounds a line, and passes on why the child ended.
"""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import orjson
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from runtime.mcp.child_guard import GUARD
from runtime.mcp.connection_errors import TAIL, Notes
from runtime.mcp.remote_tool import ServerTrouble, one_line
from runtime.mcp.settings import ServerSettings, Surroundings
from runtime.values.texts import mended

LONGEST_LINE = 32 * 1024 * 1024
OUTGOING = 32
"""Messages that wait for a child which does not read; a cancellation finds room among them."""
CLOSE_GRACE = 0.4
"""Seconds a child has to end once its input has ended, before it is asked to by a signal."""
TERM_GRACE = 0.3
"""Seconds it has then, before it is killed."""
LAST_WORDS = 0.3
"""Seconds to wait for the exit status and the rest of stderr when stdout has ended."""

BASE_VARIABLES = (
    [
        "APPDATA",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    ]
    if sys.platform == "win32"
    else ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"]
)
"""What every child gets of our variables: nothing that could hold a key."""

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]

log = logging.getLogger("wholeturn.mcp")


def environment(server: ServerSettings, ours: Mapping[str, str]) -> dict[str, str]:
    """The child's variables: a few harmless ones, those that were asked for by name, those that were set."""
    passed = (*BASE_VARIABLES, *server.pass_env)
    return {name: ours[name] for name in passed if name in ours} | dict(server.env)


@asynccontextmanager
async def child(
    server: ServerSettings, surroundings: Surroundings, notes: Notes
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Start it; on leaving it has ended, with its whole process group. Raises ServerTrouble, OSError."""
    process = await _spawn(server, surroundings)
    send_in, receive_in = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    send_out, receive_out = anyio.create_memory_object_stream[SessionMessage](OUTGOING)
    try:
        with trio.CancelScope(shield=True):
            await GUARD.watch(process.pid)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_drain, process, notes)
            heard = _Heard()
            nursery.start_soon(_read, process, send_in, notes, heard)
            nursery.start_soon(_write, process, receive_out)
            nursery.start_soon(_await_end, process, send_in, notes, heard)
            yield receive_in, send_out
            nursery.cancel_scope.cancel()
    finally:
        for stream in (send_in, receive_in, send_out, receive_out):
            stream.close()
        with trio.CancelScope(shield=True):
            await _end(process)
            await GUARD.release(process.pid)


async def _spawn(server: ServerSettings, surroundings: Surroundings) -> trio.Process:
    folder = server.cwd or str(surroundings.cwd)
    try:
        return await trio.lowlevel.open_process(
            [server.command, *server.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(server, surroundings.env),
            cwd=folder,
            start_new_session=True,
        )
    except FileNotFoundError:
        what = "the command" if await trio.Path(folder).is_dir() else "its folder"
        name = server.command if what == "the command" else folder
        raise ServerTrouble(f"{what} {one_line(name, 120)!r} was not found", lasting=True) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ServerTrouble(
            f"{one_line(server.command, 120)!r} cannot be started: {why}", lasting=True
        ) from None


# ---------------------------------------------------------------- traffic


@dataclass(slots=True)
class _Heard:
    """What came of a child's stdout. steps: pieces that arrived and messages that were handed on, so far.

    all_of_it: set when it has ended and every message of it was handed on.
    """

    steps: int = 0
    all_of_it: trio.Event = field(default_factory=trio.Event)


async def _read(
    process: trio.Process,
    into: MemoryObjectSendStream[SessionMessage | Exception],
    notes: Notes,
    heard: _Heard,
) -> None:
    assert process.stdout is not None  # piped above
    pieces: list[bytes] = []
    held = 0
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for data in process.stdout:
            heard.steps += 1
            *ends, rest = bytes(data).split(b"\n")
            for end in ends:
                await _take(b"".join((*pieces, end)), into, notes)
                heard.steps += 1
                pieces, held = [], 0
            pieces.append(rest)
            held += len(rest)
            if held > LONGEST_LINE:
                notes.exit = f"it sent a line of more than {LONGEST_LINE:,} bytes"
                raise ServerTrouble(notes.exit)
        # Who ends at once may leave out the last line feed.
        await _take(b"".join(pieces), into, notes)
    heard.all_of_it.set()
    with trio.move_on_after(LAST_WORDS):
        await notes.last_words.wait()
    into.close()


async def _take(line: bytes, into: MemoryObjectSendStream[SessionMessage | Exception], notes: Notes) -> None:
    if not line.strip():
        return
    try:
        message = _understood(line)
    except ValueError:
        # A stray print: what it spoiled is told when the server turns out not to answer.
        notes.garbage = notes.garbage or line[:TAIL].decode(errors="replace")
        log.debug("MCP server %s wrote what is no message", notes.name)
        refused = _refused(line)
        if refused is not None:
            await into.send(SessionMessage(refused))
        return
    await into.send(SessionMessage(message))


def _understood(line: bytes) -> JSONRPCMessage:
    """The message. A text that was cut within a character, which JavaScript sends as half a pair, is mended.

    Raises ValueError.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        if not _HALF.search(line):
            raise
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except RecursionError as error:
        raise ValueError(str(error)) from error
    return jsonrpc_message_adapter.validate_json(mended(text), by_name=False)


def _refused(line: bytes) -> JSONRPCError | None:
    """For a broken answer an error in its place: who asked would wait for it until the time is up."""
    try:
        found = orjson.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.keys().isdisjoint(("result", "error")):
        return None
    asked = found.get("id")
    if isinstance(asked, bool) or not isinstance(asked, int | str):
        return None
    fault = ErrorData(code=INVALID_REQUEST, message="the answer does not follow the protocol")
    return JSONRPCError(jsonrpc="2.0", id=asked, error=fault)


async def _write(process: trio.Process, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None  # piped above
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async for item in messages:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send_all(f"{text}\n".encode())
    messages.close()


async def _drain(process: trio.Process, notes: Notes) -> None:
    assert process.stderr is not None  # piped above
    async for data in process.stderr:
        notes.heard(bytes(data))
    await process.wait()
    notes.ended_with(process.returncode)


async def _await_end(
    process: trio.Process,
    into: MemoryObjectSendStream[SessionMessage | Exception],
    notes: Notes,
    heard: _Heard,
) -> None:
    """A child of the child may hold the pipes open when the child itself is gone.

    What the child wrote before its end is still heard: its last answer lies in the pipe.
    """
    await process.wait()
    steps = -1
    while steps != heard.steps and not heard.all_of_it.is_set():
        steps = heard.steps
        with trio.move_on_after(LAST_WORDS):
            await heard.all_of_it.wait()
    with trio.move_on_after(LAST_WORDS):
        await notes.last_words.wait()
    notes.ended_with(process.returncode)
    into.close()


# ---------------------------------------------------------------- the end


async def _end(process: trio.Process) -> None:
    assert process.stdin is not None  # piped above
    with suppress(trio.BrokenResourceError):
        await process.stdin.aclose()
    for seconds, number in ((CLOSE_GRACE, signal.SIGTERM), (TERM_GRACE, None)):
        with trio.move_on_after(seconds):
            await process.wait()
        if process.returncode is not None or number is None:
            break
        _signal(process, number)
    # To the whole group in any case: what a dead leader left behind has nobody to talk to.
    _signal(process, None)
    await process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            await stream.aclose()


def _signal(process: trio.Process, number: signal.Signals | None) -> None:
    """None: kill."""
    if sys.platform == "win32":
        with suppress(OSError):
            process.kill() if number is None else process.terminate()
        return
    with suppress(OSError):
        os.killpg(process.pid, number or signal.SIGKILL)
