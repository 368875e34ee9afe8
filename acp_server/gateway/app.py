"""The gateway as one ASGI app: every route behind the guard. Knows neither sockets nor what routes do."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from acp_server.gateway import acp_socket, api, dashboard, events
from acp_server.gateway.guard import Guard
from acp_server.gateway.refusals import refused
from acp_server.gateway.state import GatewayState


def build(state: GatewayState) -> ASGIApp:
    """The app. The dashboard comes last: it has what no other route takes."""
    parts = (acp_socket, events, api, dashboard)
    routes = [route for part in parts for route in part.routes(state)]
    handlers = {HTTPException: refused, Exception: refused}
    app = Starlette(routes=routes, exception_handlers=handlers)
    # A path is one of ours or it is not; a redirect would repeat what was sent.
    app.router.redirect_slashes = False
    return Guard(app, state)
