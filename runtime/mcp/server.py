"""One MCP server while a session lives: connected, watched, started again, closed. Knows no SDK.

`run` is the owner: it alone enters and leaves the connection. All others use what it sets.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

import trio

from runtime.mcp.remote_tool import Connect, Link, Offer, ServerTrouble, one_line
from runtime.mcp.settings import ServerSettings

DELAYS = (1.0, 4.0, 15.0)
"""Seconds before each new try after a failure; then the server is left alone until somebody asks for it."""
STEADY = 60.0
"""A connection that lasted so many seconds makes the failures before it count no more."""
PATIENCE = 10.0
"""Seconds that a call waits for a server which is just being connected."""
SWARM = 0.2
"""Seconds from the news of a change to the next list of tools."""
CLOSING = 1.0
"""Seconds that leaving a connection in peace may take before it is cut off."""

log = logging.getLogger("wholeturn.mcp")


class State(StrEnum):
    """How a server stands, in the words that people read."""

    CONNECTING = "connecting"
    READY = "ready"
    WAITING = "will be tried again"
    FAILED = "failed"
    CLOSED = "closed"


class Server:
    """A server of a session. offer: what it last had to offer; it stays while the server is started again.

    settled: set while no try is under way. problem: the last failure, one line, '' for none.
    """

    def __init__(self, settings: ServerSettings, connect: Connect) -> None:
        self.settings = settings
        self.state = State.CONNECTING
        self.problem = ""
        self.offer = Offer()
        self.settled = trio.Event()
        self._connect = connect
        self._link: Link | None = None
        self._scope = trio.CancelScope()
        self._stopping = False
        self._news = trio.Event()

    @property
    def name(self) -> str:
        """The name in the settings, unique in the session."""
        return self.settings.name

    # ------------------------------------------------------------ the owner

    async def run(self) -> None:
        """Keep it connected until `stop`. Raises nothing but a cancellation, and what is a bug."""
        failures = 0
        try:
            with self._scope:
                while not self._stopping:
                    began = trio.current_time()
                    trouble = await self._session()
                    if trouble is not None:
                        failures = 1 if trio.current_time() - began > STEADY else failures + 1
                        failures = await self._rest(trouble, failures)
        finally:
            self.state, self.offer = State.CLOSED, Offer()
            self.settled.set()

    def stop(self) -> None:
        """Let `run` close the connection and return: in peace when there is one, else at once."""
        self._stopping = True
        self._scope.deadline = -math.inf if self._link is None else trio.current_time() + CLOSING
        self._news.set()

    def retry(self) -> None:
        """Try a server again that was left alone; nothing in any other state."""
        if self.state is State.FAILED:
            self._news.set()

    def _wake(self) -> None:
        self._news.set()

    async def _session(self) -> ServerTrouble | None:
        """One connection from its beginning to its end. None when it was stopped."""
        self.state = State.CONNECTING
        if self.settled.is_set():
            self.settled = trio.Event()
        try:
            async with self._connect(self.settings, self._wake) as link:
                await self._serve(link)
        except ServerTrouble as trouble:
            return trouble
        finally:
            self._link = None
        return None

    async def _serve(self, link: Link) -> None:
        """Until it is to end. Asks for the offer when it changes. Raises ServerTrouble when it is cut off."""
        while not self._stopping:
            self._news = trio.Event()
            if link.ended:
                raise ServerTrouble(link.ended)
            offer, wanted = await link.offer(), self.settings.tools
            if wanted is not None:
                offer = replace(offer, tools=tuple(tool for tool in offer.tools if tool.name in wanted))
            self._link, self.offer, self.state, self.problem = link, offer, State.READY, ""
            self.settled.set()
            await self._news.wait()
            # Changes come in swarms, and some servers tell of them without end.
            await trio.sleep(0 if self._stopping or link.ended else SWARM)

    async def _rest(self, trouble: ServerTrouble, failures: int) -> int:
        """After a failure: wait for the time of the next try. Returns how many failures still count."""
        alone = trouble.lasting or failures > len(DELAYS)
        self.state, self.problem = State.FAILED if alone else State.WAITING, trouble.message
        log.warning("MCP server %s: %s", one_line(self.name, 60), trouble.message)
        self.offer = Offer() if alone else self.offer
        self.settled.set()
        self._news = trio.Event()
        with trio.move_on_after(math.inf if alone else DELAYS[failures - 1]):
            await self._news.wait()
        return 0 if alone else failures

    # ------------------------------------------------------------ what tools do

    async def call(self, tool: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Run a tool. Raises ServerTrouble, also after the server's call_timeout."""
        return await (await self._ready()).call(tool, arguments)

    async def resources(self) -> tuple[Mapping[str, object], ...]:
        return await (await self._ready()).resources()

    async def read(self, uri: str) -> Mapping[str, object]:
        return await (await self._ready()).read(uri)

    async def _ready(self) -> Link:
        """The open connection, after waiting for it. Raises ServerTrouble when there is none."""
        with trio.move_on_after(PATIENCE):
            while self._link is None and self.state is State.CONNECTING:
                await self.settled.wait()
        if self._link is None:
            why = self.problem or "it does not answer yet"
            raise ServerTrouble(
                f"the MCP server {one_line(self.name, 60)} is not there ({self.state}): {why}"
            )
        return self._link
