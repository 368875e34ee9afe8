"""The MCP servers of one session: started together, each on its own, and what the session gets of them.

Between turns, and only then, the session is handed the tools that are there by then. The beginning of
requests, which providers cache, thus changes when the set of tools does and at no other time.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import trio

from runtime.conversation.conversation import Conversation
from runtime.mcp.remote_tool import Connect, Link, one_line
from runtime.mcp.server import Server, State
from runtime.mcp.settings import McpSettings, ServerSettings, Surroundings
from runtime.mcp.tools_offered import Offering, is_remark
from runtime.trimming.model_context import adopt
from runtime.values.events import Noticed

QUIET = 0.5
"""Seconds of waiting before the person is told of it."""
AGAIN = 60.0
"""Servers that were given up are tried again with a prompt, at most every so many seconds."""
TITLE = "MCP servers"
STARTING = "It is still starting; its tools come with a later prompt."

log = logging.getLogger("wholeturn.mcp")


@dataclass(frozen=True, slots=True)
class Standing:
    """How a server stands, for the person. tools: how many it has. offered: how many the model is told of."""

    name: str
    state: str
    tools: int
    offered: int
    problem: str


class Fleet:
    """The servers of one session. Fills `runtime.session.session.ToolServers`."""

    def __init__(self, servers: Sequence[ServerSettings], settings: McpSettings, connect: Connect) -> None:
        self._servers = tuple(Server(server, connect) for server in servers)
        self._first_turn_wait = settings.first_turn_wait
        self._offering = Offering(settings)
        self._closed: trio.Event | None = None
        self._waited = False
        self._tried = 0.0
        self._told: dict[str, str] = {}

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Connect to all of them, in the background, until `aclose`. The second time nothing."""
        if self._closed is not None:
            return
        self._closed = trio.Event()
        self._tried = trio.current_time()
        # A task of the whole program: a session is opened by a request, and outlives it.
        trio.lowlevel.spawn_system_task(self._run, self._closed, name="MCP servers")

    async def aclose(self) -> None:
        """Close all connections; returns when every child process has ended."""
        for server in self._servers:
            server.stop()
        if self._closed is not None:
            await self._closed.wait()

    async def _run(self, closed: trio.Event) -> None:
        try:
            async with trio.open_nursery() as nursery:
                for server in self._servers:
                    nursery.start_soon(self._keep, server)
        finally:
            closed.set()

    async def _keep(self, server: Server) -> None:
        """A fault in one server's task is that server's end, and nothing else's."""
        try:
            await server.run()
        except Exception:
            log.exception("the MCP server %s is given up", one_line(server.name, 60))
        except BaseExceptionGroup as group:
            # The end of the program came together with a fault: only the first goes on.
            faults, rest = group.split(Exception)
            log.error(
                "the MCP server %s failed while it was closed", one_line(server.name, 60), exc_info=faults
            )
            if rest is not None:
                raise rest from None

    # ------------------------------------------------------------ for the session

    async def before_turn(self, talk: Conversation, text: str) -> None:
        """Hand over the tools that are there, and say what is not. The first prompt waits for them a little.

        A command, or a prompt that no model will see, waits for nothing.
        """
        self.start()
        if talk.setup.kind and not text.lstrip().startswith("/"):
            await self._wait(talk)
        self._try_again()
        chosen = self._offering.tools(self._servers, talk.setup, talk.keeper.route)
        remark = self._offering.remark(self._servers)
        system = tuple(row for row in talk.setup.system if not is_remark(row))
        setup = replace(talk.setup, tools=chosen, system=(*system, remark) if remark else system)
        if (setup.tools, setup.system) != (talk.setup.tools, talk.setup.system):
            adopt(talk.keeper, setup)
        talk.pending.extend(self._news())

    def states(self) -> tuple[Standing, ...]:
        """How each server stands, in the order of the settings."""
        return tuple(self._standing(server) for server in self._servers)

    def _standing(self, server: Server) -> Standing:
        tools, offered = len(server.offer.tools), self._offering.count(server)
        return Standing(server.name, server.state.value, tools, offered, server.problem)

    async def _wait(self, talk: Conversation) -> None:
        if self._waited:
            return
        with trio.move_on_after(self._first_turn_wait):
            with trio.move_on_after(QUIET) as quiet:
                await self._settled()
            if quiet.cancelled_caught:
                await talk.emit(Noticed("info", TITLE, f"Waiting for {self._unsettled()} ..."))
                await self._settled()
        self._waited = True

    async def _settled(self) -> None:
        for server in self._servers:
            await server.settled.wait()

    def _unsettled(self) -> str:
        names = (one_line(server.name, 60) for server in self._servers if not server.settled.is_set())
        return ", ".join(names)

    def _try_again(self) -> None:
        if trio.current_time() - self._tried >= AGAIN:
            self._tried = trio.current_time()
            for server in self._servers:
                server.retry()

    def _news(self) -> Iterator[Noticed]:
        """What the person has not been told yet."""
        for server in self._servers:
            title = f"MCP server {one_line(server.name, 60)}"
            late = self._waited and server.state is State.CONNECTING
            trouble = server.problem or (STARTING if late else "")
            if self._is_new(f"trouble {server.name}", trouble):
                yield Noticed("warning", title, trouble)
            few = self._offering.few(server)
            if self._is_new(f"few {server.name}", few):
                yield Noticed("info", title, few)

    def _is_new(self, key: str, text: str) -> bool:
        known, self._told[key] = self._told.get(key, ""), text
        return bool(text) and text != known


def fleet(servers: Sequence[ServerSettings], settings: McpSettings, surroundings: Surroundings) -> Fleet:
    """Servers that are really reached, not started yet."""
    return Fleet(servers, settings, partial(_connected, surroundings))


@asynccontextmanager
async def _connected(
    surroundings: Surroundings, server: ServerSettings, wake: Callable[[], None]
) -> AsyncIterator[Link]:
    """A connection; the SDK behind it is imported in a thread, as that takes a second."""
    connect = await trio.to_thread.run_sync(_sdk, abandon_on_cancel=True)
    async with connect(surroundings)(server, wake) as link:
        yield link


def _sdk() -> "Callable[[Surroundings], Connect]":
    from runtime.mcp.connection import connect

    return connect
