"""A real server with its owner, for as long as a test needs it. Every wait is bounded."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from runtime.mcp.connection import connect
from runtime.mcp.server import Server
from runtime.mcp.settings import ServerSettings, Surroundings

DATA = Path(__file__).resolve().parents[2] / "data" / "mcp"
PATIENCE = 30.0
SECRET = "hunter2-hunter2"


@asynccontextmanager
async def running(folder: Path, *behaviour: str, **more) -> AsyncIterator[Server]:
    """A server that has settled. Its process ids go into `folder/pids`."""
    arguments = (str(DATA / "server.py"), *(behaviour or ("good",)), str(folder / "pids"))
    settings = ServerSettings(**{"name": "s", "command": sys.executable, "args": arguments, **more})
    async with owned(settings, folder) as server:
        yield server


@asynccontextmanager
async def owned(settings: ServerSettings, folder: Path) -> AsyncIterator[Server]:
    surroundings = Surroundings(folder, lambda: (folder,), {**os.environ, "OUR_KEY": SECRET, "TOKEN": SECRET})
    server = Server(settings, connect(surroundings))
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run)
            await server.settled.wait()
            yield server
            server.stop()


def text_of(result) -> str:
    return "".join(block.get("text", "") for block in result["content"])
