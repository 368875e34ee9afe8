"""An MCP server on loopback by the SDK: `http_server.py`. Prints its port. Written for tests.

`/mcp` is streamable HTTP, `/sse` the older way; both want the bearer token `open sesame-1234`.
"""

import socket

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

server = MCPServer("test")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Guarded:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "http" and headers.get(b"authorization") != b"Bearer sesame-1234":
            await PlainTextResponse("no", status_code=401)(scope, receive, send)
            return
        await self.app(scope, receive, send)


streamable = server.streamable_http_app()
app = Starlette(
    routes=[*streamable.routes, *server.sse_app().routes], lifespan=streamable.router.lifespan_context
)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(Guarded(app), log_level="error")).run(sockets=[listener])
