"""`/acp`: the Agent Client Protocol over a WebSocket, by the same connection and methods as over stdio."""

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from acp_server.connection import Connection
from acp_server.gateway.frames import FrameStream
from acp_server.gateway.methods import METHODS
from acp_server.gateway.seat import Seat
from acp_server.gateway.state import GatewayState

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
