"""One connection's App: the process's sessions as this client sees them. Knows no socket.

A client may name only sessions that it opened itself; the stores and providers behind them are everybody's.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from acp_server.acp.client import Wire
from acp_server.app.app import not_found
from acp_server.app.open_sessions import Live
from acp_server.gateway.sessions.process_app import HubApp
from acp_server.gateway.sessions.running_turn import Asked
from acp_server.gateway.sessions.shared_sessions import AUDIENCE
from acp_server.wire.dispatch import Later
from runtime.conversation.conversation import Conversation
from runtime.session.session import Session
from runtime.values.events import Event

if TYPE_CHECKING:
    from acp_server.gateway.sessions.process_app import GatewayState
    from runtime.ports import Client
    from schemas.acp.mcp import McpServer

SLOW_SECONDS = 15.0
"""How long a connection may be far behind before it is cut."""

log = logging.getLogger("wholeturn.gateway")


class Seat(HubApp):
    """A client of the gateway. abort: cuts its socket at once. prompts: its own, on their way.

    opened: the sessions that it has open.
    """

    client: "Client"
    """Made when the first session is opened: only then all is known that it is made with."""

    def __init__(self, state: "GatewayState", abort: Callable[[], None]) -> None:
        super().__init__(state.app._options, state.app.env, state.app._client_factory)
        self.share(state.app)
        self.hub = state.hub
        self.wire: Wire | None = None
        self.gone = False
        self.prompts: set[Asked] = set()
        self.shared = state.app
        self._abort = abort
        self.opened: set[str] = set()
        self._interest = state.feed.interest
        self._followed: set[str] = set()

    # ------------------------------------------------------------ for the connection

    def initialized(self, params: Mapping[str, object]) -> None:
        super().initialized(params)
        self.__dict__.pop("client", None)

    def has_sessions(self) -> bool:
        return bool(self.opened)

    def left(self) -> None:
        """The client has gone, or is to go. What runs in its sessions is the business of those who stay."""
        self.gone = True
        for session_id in tuple(self.opened):
            self.let_go(session_id)

    async def aclose(self) -> None:
        """The sessions are not this connection's to close."""
        self.left()
        await trio.lowlevel.checkpoint()

    def let_go(self, session_id: str) -> None:
        """Forget a session; what happens there is not told any more."""
        self.opened.discard(session_id)
        if session_id in self._followed:
            self._followed.discard(session_id)
            self._interest.go(frozenset({session_id}), reads=False)
        self.hub.leave(session_id, self)

    async def tell(self, session_id: str, event: Event) -> None:
        """Tell the client what happened. One that stays far behind is cut: the others wait for it."""
        if self.gone:
            return
        with trio.move_on_after(SLOW_SECONDS) as scope:
            await self.client.emit(session_id, event)
        if scope.cancelled_caught:
            log.warning("a connection to /acp is cut: it does not read what it is sent")
            self.left()
            self._abort()

    # ------------------------------------------------------------ sessions

    async def new_session(
        self, cwd: Path, directories: Sequence[Path] = (), servers: "tuple[McpServer, ...]" = ()
    ) -> str:
        session_id = await super().new_session(cwd, directories, servers)
        # Without a wait from here on: once a session is open, nothing takes the client away.
        self._make_client(cwd)
        self.opened.add(session_id)
        self.hub.room(session_id).join(self)
        self._follow(session_id)
        return session_id

    async def load_session(
        self,
        session_id: str,
        cwd: Path,
        directories: Sequence[Path] = (),
        servers: "tuple[McpServer, ...]" = (),
        *,
        quietly: bool = False,
    ) -> Session:
        """What happens while the stored part is shown is told after it."""
        room, known = self.hub.room(session_id), session_id in self.opened
        async with room.opening:
            self.opened.add(session_id)
            room.join(self, behind=session_id in self.sessions and not quietly)
            try:
                self._make_client(cwd)
                session = await super().load_session(session_id, cwd, directories, servers, quietly=quietly)
            except BaseException:
                if known:
                    await room.catch_up(self)
                else:
                    self.let_go(session_id)
                raise
            self._follow(session_id)
            return session

    def session(self, session_id: str) -> Session:
        """Raises ResourceNotFound for one that this client has not opened, too."""
        if session_id not in self.opened:
            raise not_found(session_id)
        return super().session(session_id)

    async def close_session(self, session_id: str) -> None:
        """Stop the client's own prompts and let go of the session; the last one who does closes it."""
        if session_id not in self.opened:
            raise not_found(session_id)
        own = [asked for asked in self.prompts if asked.session_id == session_id]
        for asked in own:
            asked.stop()
        for asked in own:
            await asked.done.wait()
        room = self.hub.room(session_id)
        self.let_go(session_id)
        if room.empty:
            await self.shared.end_session(session_id)

    def asked(self, session_id: str, turn: Later) -> Later:
        """A prompt's turn as work that outlives the connection."""
        asked = Asked(self, session_id, turn.run, turn.cancel or _nothing, self._prompt_over)
        self.prompts.add(asked)
        self.hub.nursery.start_soon(asked.work)
        return Later(asked.response, turn.then, asked.give_up)

    @property
    def live(self) -> Live:
        """What it shows of the past is for this client alone."""
        return SeatLive(self)

    def _prompt_over(self, asked: Asked) -> None:
        self.prompts.discard(asked)
        self.hub.turn_over(asked.session_id, asked.turn_id)

    def _follow(self, session_id: str) -> None:
        """From now on hear of what other processes do there: what is stored was shown."""
        if session_id in self.opened and session_id not in self._followed:
            self._followed.add(session_id)
            self._interest.come(frozenset({session_id}), reads=False)

    def _make_client(self, cwd: Path) -> None:
        if "client" not in self.__dict__ and self.wire is not None:
            self.client = super().live.make_client(self.wire, self.greeting, self.config(cwd))


class SeatLive(Live):
    """`Live` for one of several clients."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat.env)
        self._seat = seat

    async def replay(self, talk: Conversation) -> None:
        await self._alone(super().replay, talk)

    async def announce(self, talk: Conversation) -> None:
        await self._alone(super().announce, talk)

    async def _alone(self, show: Callable[[Conversation], Awaitable[None]], talk: Conversation) -> None:
        token = AUDIENCE.set(self._seat)
        try:
            await show(talk)
        finally:
            AUDIENCE.reset(token)


def _nothing() -> None:
    """There is nothing to stop."""
