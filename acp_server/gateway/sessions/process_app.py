"""The process's own App behind the gateway, and what all parts of one gateway share.

Sessions, stores and providers, with no connection of its own. Knows when a session that nobody has open any
more is closed.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from acp_server.app.app import App, Reserved
from acp_server.config.settings import Options, SessionConfig
from acp_server.gateway.sessions.shared_session import Room
from acp_server.gateway.sessions.shared_sessions import Hub, Publish
from acp_server.gateway.sockets import Wires

if TYPE_CHECKING:
    from runtime.ports import Client
    from runtime.session.session import Session

log = logging.getLogger("wholeturn.gateway")


class HubApp(App):
    """An App whose sessions are told to the hub's rooms."""

    hub: Hub

    def share(self, other: App) -> None:
        """Have the sessions, stores and providers of another App instead of new ones."""
        self.sessions, self._reserved = other.sessions, other._reserved
        self._stores, self._providers = other._stores, other._providers

    def _client_of(self, session_id: str, config: SessionConfig) -> "Client":
        return self.hub.client(session_id)

    def _open(self, reserved: Reserved) -> "Session":
        session = super()._open(reserved)
        self.hub.watch_prompts(session.conversation)
        return session


class SharedApp(HubApp):
    """What all connections share. grace: seconds that a turn goes on when its last client has gone."""

    def __init__(
        self, options: Options, env: Mapping[str, str], nursery: trio.Nursery, publish: Publish, grace: float
    ) -> None:
        super().__init__(options, env, self._nobody)
        self.hub = Hub(nursery, publish, self._parting)
        self._grace = grace

    async def end_session(self, session_id: str) -> None:
        """Close a session, whoever has it open."""
        room = self.hub.room(session_id)
        room.clear()
        async with room.opening:
            await self._end(room)

    async def _parting(self, room: Room) -> None:
        """Wait until someone comes back, the turn has ended, or its grace is over; else close the session."""
        session = self.sessions.get(room.session_id)
        if session is not None:
            with trio.move_on_after(self._grace):
                if await _comes_back(session, room):
                    # Who goes again, or does not get in, has a grace of his own.
                    return
        async with room.opening:
            if not room.empty:
                return
            if session is not None and not session.idle.is_set():
                log.info("nobody came back to session %s: its turn is cancelled", room.session_id)
            await self._end(room)

    async def _end(self, room: Room) -> None:
        if room.session_id in self.sessions or room.session_id in self._reserved:
            await self.close_session(room.session_id)
        self.hub.forget(room)

    def _nobody(self, params: Mapping[str, object], config: SessionConfig) -> "Client":
        raise AssertionError("every session of the gateway has a room")


async def _comes_back(session: "Session", room: Room) -> bool:
    """Wait until somebody has the session open, or it has nothing to do; whether it was the first."""
    came = False
    async with trio.open_nursery() as nursery:

        async def come() -> None:
            nonlocal came
            await room.someone()
            came = True
            nursery.cancel_scope.cancel()

        nursery.start_soon(come)
        await session.idle.wait()
        nursery.cancel_scope.cancel()
    return came


if TYPE_CHECKING:  # each of them takes this value, or is told of it
    import trio

    from acp_server.config.settings import GatewaySettings
    from acp_server.gateway.feed.feed import Feed
    from acp_server.gateway.sessions.shared_sessions import Hub


@dataclass(frozen=True, slots=True)
class GatewayState:
    """app: the process's sessions and stores. hub: who has which session open over `/acp`. feed: all events.

    settings: `[gateway]`. token: what every request must show. nursery: ends with the gateway; what runs
    longer than a request is started here. wires: the sockets.
    """

    app: "SharedApp"
    hub: "Hub"
    feed: "Feed"
    settings: "GatewaySettings"
    token: str
    nursery: "trio.Nursery"
    wires: Wires = field(default_factory=Wires)
