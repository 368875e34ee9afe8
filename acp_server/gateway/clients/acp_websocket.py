"""`/acp`: the Agent Client Protocol over a WebSocket, one message a text frame, by the methods of stdio.

Only what several clients share is answered otherwise. The frames become the stream of lines that a connection
reads and writes; line ends inside a frame are blanks between the parts of its JSON.
"""

from collections.abc import Callable, Mapping

import trio
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from acp_server.acp.capabilities import initialize_result
from acp_server.acp.params import parse
from acp_server.gateway.clients.client_app import Seat
from acp_server.gateway.sessions.process_app import GatewayState
from acp_server.methods.v1 import prompt_and_options, sessions
from acp_server.methods.v1 import table as stdio
from acp_server.wire.connection import Connection
from acp_server.wire.dispatch import Answer, Handler, Later
from runtime.values.events import OptionsChanged
from schemas.acp.prompt_and_options import CancelParams, SetConfigOptionParams
from schemas.acp.session import DeleteSessionParams, LoadSessionParams

NORMAL, GOING_AWAY, NOT_TEXT = 1000, 1001, 1003
"""Close codes of RFC 6455. 1009 (too big) is the server's own; it looks at the size while it reads."""


class FrameStream(trio.abc.Stream):
    """The stream. left: called once when the client has gone, before the reader learns of the end."""

    def __init__(self, socket: WebSocket, left: Callable[[], None]) -> None:
        self._socket = socket
        self._left = left
        self._over = False
        self._code = GOING_AWAY

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """The next frame as a line, however long; b"" at the end. A frame that is not text is the end."""
        if self._over:
            return b""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return self._end(NORMAL)
        text = message.get("text")
        if text is None:
            return self._end(NOT_TEXT)
        return str(text).encode().replace(b"\n", b" ") + b"\n"

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send whole lines, a frame each. Raises BrokenResourceError when the client has gone."""
        for line in bytes(data).split(b"\n")[:-1]:
            if self._over:
                raise trio.BrokenResourceError("the client has gone")
            try:
                await self._socket.send_text(line.decode())
            except (WebSocketDisconnect, RuntimeError) as error:
                raise trio.BrokenResourceError("the client has gone") from error

    async def wait_send_all_might_not_block(self) -> None:
        """Nothing is known about that, so this does not wait."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Say why, if anybody is there to hear it."""
        self._over = True
        if self._socket.client_state is WebSocketState.CONNECTED:
            await self._socket.close(self._code)

    def _end(self, code: int) -> bytes:
        self._over, self._code = True, code
        self._left()
        return b""


def initialize(seat: Seat, params: Mapping[str, object]) -> Answer:
    """`initialize`. The draft of the next version is for one client at a time, so it is not offered here."""
    return Answer(initialize_result(params))


def load(seat: Seat, params: Mapping[str, object]) -> Later:
    """`session/load`: what happened meanwhile is told behind the answer, as all that is live."""
    stored = sessions.load(seat, params)
    session_id = parse(LoadSessionParams, params).session_id

    async def run() -> object:
        try:
            return await stored.run()
        except BaseException:
            await seat.hub.catch_up(session_id, seat)
            raise

    async def then() -> None:
        await seat.hub.catch_up(session_id, seat)
        if stored.then is not None:
            await stored.then()

    return Later(run, then)


def prompt(seat: Seat, params: Mapping[str, object]) -> Answer | Later:
    """`session/prompt`: a turn that goes on when this connection is gone."""
    turn = prompt_and_options.prompt(seat, params)
    return seat.asked(str(params["sessionId"]), turn) if isinstance(turn, Later) else turn


def cancel(seat: Seat, params: Mapping[str, object]) -> None:
    """`session/cancel`: of a session that this client has open; whoever prompted there."""
    if parse(CancelParams, params).session_id in seat.opened:
        prompt_and_options.cancel(seat, params)


def delete(seat: Seat, params: Mapping[str, object]) -> Later:
    """`session/delete`: ended for everybody, and gone for good."""
    session_id, rest = parse(DeleteSessionParams, params).session_id, sessions.delete(seat, params)

    async def run() -> object:
        await seat.shared.end_session(session_id)
        return await rest.run()

    return Later(run)


def set_config_option(seat: Seat, params: Mapping[str, object]) -> Later:
    """`session/set_config_option`: the answer tells this client, an update the others."""
    asked, change = parse(SetConfigOptionParams, params), prompt_and_options.set_config_option(seat, params)

    async def run() -> object:
        result = await change.run()
        talk = seat.session(asked.session_id).conversation
        await seat.hub.room(asked.session_id).tell(OptionsChanged(talk.offers()), besides=seat)
        return result

    return Later(run)


METHODS: Mapping[str, Handler[Seat]] = {
    **stdio.METHODS,
    "initialize": initialize,
    "session/load": load,
    "session/prompt": prompt,
    "session/cancel": cancel,
    "session/delete": delete,
    "session/set_config_option": set_config_option,
}

PATH = "/acp"
SUBPROTOCOL = "acp"


def routes(state: GatewayState) -> list[BaseRoute]:
    """The one route."""

    async def serve(socket: WebSocket) -> None:
        offered = socket.scope.get("subprotocols", [])
        await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        await serve_client(state, socket)

    return [WebSocketRoute(PATH, serve)]


async def serve_client(state: GatewayState, socket: WebSocket) -> None:
    """One client, until it goes away or the gateway ends."""
    seat = Seat(state, socket.scope["state"]["cut"])
    stream = FrameStream(socket, seat.left)
    connection = Connection(stream, METHODS, seat)
    seat.wire = connection
    with state.hub.connected(connection.stop):
        await connection.serve(signals=False)
        await stream.aclose()
