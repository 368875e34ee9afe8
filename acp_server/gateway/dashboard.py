"""The dashboard's files: a page, a style sheet and scripts, as they stand in `static`. They hold no data.

Everything is read once; a browser keeps a file and asks whether it changed.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

if TYPE_CHECKING:
    from acp_server.gateway.state import GatewayState

FOLDER = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE = "index.html"


def routes(state: "GatewayState") -> list[BaseRoute]:
    """A route for each file: there is no path to anything else."""
    files = sorted(path for path in FOLDER.iterdir() if path.suffix in TYPES)
    return [Route("/" if path.name == PAGE else f"/static/{path.name}", serving(path)) for path in files]


def serving(path: Path) -> Callable[[Request], Awaitable[Response]]:
    """The handler of a file."""
    body, media_type = path.read_bytes(), TYPES[path.suffix]
    headers = {"etag": f'"{sha256(body).hexdigest()[:32]}"', "cache-control": "no-cache"}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=media_type, headers=headers)

    return serve
