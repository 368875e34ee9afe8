"""One of several processes that want the same session: waits for its lease, then works until it is killed.

A script of tests/runtime/store/test_handover.py. Its work is a turn without an end: step n + 1 is a tool call
that is asked for when the result of step n is known, and that leaves a line in a file when it is carried out.
It says `waiting`, `took LAST-SEQ`, `known N` for each request, and `lost` when somebody else has the session.
"""

import os
import re
from collections.abc import Sequence
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.lease import LeasedStore, new_holder, noting
from runtime.conversation.load_and_fork import read_state, reload, restore
from runtime.embed.agent import FunctionTool
from runtime.embed.silent_client import BareClient
from runtime.permission.modes import Permission
from runtime.ports import PermissionOption, PermissionOutcome
from runtime.session.session import Session
from runtime.setup.session_setup import Setup
from runtime.store.postgres.store import PostgresStore
from runtime.values.errors import LeaseLost, SessionBusy
from runtime.values.events import Event, ToolCallStarted
from runtime.values.model import CallPart, ModelRequest, StopPart, TextPart
from runtime.values.profiles import Profile, Route
from runtime.values.prompt import Prompt
from runtime.values.rows import ToolCall

DONE = re.compile(r"did (\d+)")
POLL_SECONDS = 0.03
STEP_SECONDS = 0.002


class Said:
    """Where what is said goes."""

    out: Connection


def say(line: str) -> None:
    """One line for the test."""
    Said.out.send(line)


class Worker:
    """A provider that always wants the step after the last one that it knows of. enough: a file; once it is
    there the turn ends.
    """

    name = "worker"

    def __init__(self, enough: Path) -> None:
        self._enough = enough

    @asynccontextmanager
    async def stream(self, request: ModelRequest):
        """The next step."""
        await request.ready()
        results = [row.content for row in request.rows() if row.role == "tool"]
        last = max((int(found[1]) for text in results if (found := DONE.search(text))), default=0)
        say(f"known {last}")

        async def parts():
            if self._enough.exists():
                yield [TextPart("enough"), StopPart("end")]
            else:
                call = ToolCall(f"c{last + 1}-{os.getpid()}", "step", f'{{"n": {last + 1}}}')
                yield [CallPart(0, call), StopPart("tool_calls")]

        yield parts()

    async def aclose(self) -> None:
        """Nothing is open."""


class Listener(BareClient):
    """Nobody looks."""

    async def emit(self, session_id: str, event: Event) -> None:
        """Nothing."""
        await trio.lowlevel.checkpoint()

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """Nobody is asked in this mode."""
        await trio.lowlevel.checkpoint()
        return PermissionOutcome(None)


def setup_of(folder: Path) -> Setup:
    """A worker with its one tool."""
    log = os.open(folder / "carried-out", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def step(arguments) -> str:
        os.write(log, f"{arguments['n']} {os.getpid()}\n".encode())
        await trio.sleep(STEP_SECONDS)
        return f"did {arguments['n']}"

    async def get() -> Worker:
        await trio.lowlevel.checkpoint()
        return Worker(folder / "enough")

    tool = FunctionTool("step", "One step.", step)
    return Setup(
        # Many turns end before their first result: all others must stay in sight.
        profile=Profile(
            max_tool_iterations=100_000,
            max_history_messages=100_000,
            max_context_tokens=150_000,
            keep_tool_context_turns=1_000,
        ),
        route=Route("worker", "worker", 200_000),
        tools={"step": tool},
        system=("Work.",),
        provider=get,
        kind="embedded",
        permission=Permission("yolo"),
    )


async def main(address: str, folder: Path, seconds: float, machine: str) -> None:
    """Wait, work, end. machine: what others take for our machine; '' for the real one."""
    store = PostgresStore(address, lease_seconds=seconds)
    holder = new_holder("worker")
    leased = LeasedStore(store, "s1", holder._replace(machine=machine) if machine else holder)
    record = await store.session("s1")
    assert record is not None
    talk = Conversation("s1", folder, setup_of(folder), leased, Listener(), state=read_state(record.state))
    with noting(leased):
        await restore(talk)
    session = Session(talk, lease=leased.lease)
    say("waiting")
    try:
        await wait_for(leased, talk)
        say(f"took {leased.lease.current.last_seq}")
        await session.run(session.submit(Prompt("go on", ({"type": "text", "text": "go on"},))))
        say("done")
    except (LeaseLost, SessionBusy):
        say("lost")
    await session.close()
    await store.aclose()


async def wait_for(leased: LeasedStore, talk: Conversation) -> None:
    """Have the lease, and know all that was written before."""
    while True:
        try:
            stale = await leased.lease.hold()
        except SessionBusy:
            await trio.sleep(POLL_SECONDS)
        else:
            break
    if stale:
        await reload(talk)


def run(out: Connection, address: str, folder: str, seconds: float, machine: str) -> None:
    """The whole life of such a process, begun by the test in a copy of one that has all modules loaded."""
    Said.out = out
    trio.run(main, address, Path(folder), seconds, machine)
