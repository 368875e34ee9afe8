"""Runs a connection over the process's descriptors: app, connection, stream. The heavy half of the start."""

import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from acp_server.app.app import App
from acp_server.config.layers import printable
from acp_server.config.merge import hint
from acp_server.config.settings import Options, SessionConfig
from acp_server.methods.versions import METHODS
from acp_server.start.early_imports import warm_up
from acp_server.wire.connection import Connection
from acp_server.wire.stdio import Hello, WireFds
from acp_server.wire.streams import open_stream

if TYPE_CHECKING:
    from runtime.ports import Client


LOG_LEVELS = ("debug", "info", "warning", "error")
DEFAULT_LEVEL = "warning"


def serve(wire: WireFds, hello: Hello, options: Options | None = None) -> int:
    """Serve until the client has gone. Returns the exit status."""
    log_to_stderr()
    trio.run(serve_wire, wire, hello, options or Options())
    return 0


async def serve_wire(wire: WireFds, hello: Hello, options: Options) -> None:
    """One client on the wire's descriptors."""
    async with open_stream(wire) as stream:
        connection: list[Connection[App]] = []

        def client(params: Mapping[str, object], config: SessionConfig) -> "Client":
            return app.live.make_client(connection[0], params, config)

        app = App(options, os.environ, client)
        connection.append(Connection(stream, METHODS, app, hello=hello))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(warm_up, connection[0].is_working, app.has_sessions)
            await connection[0].serve()
            nursery.cancel_scope.cancel()


def log_to_stderr() -> None:
    """Plain lines on stderr; WHOLETURN_LOG names the level (default: warning)."""
    level = os.environ.get("WHOLETURN_LOG") or DEFAULT_LEVEL
    known = logging.getLevelNamesMapping().get(level.upper())
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING if known is None else known,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if known is None:
        sys.stderr.write(f"wholeturn: {no_level(level)}\n")


def no_level(level: str) -> str:
    """What is said of a WHOLETURN_LOG that names no level."""
    guess = hint(level, LOG_LEVELS)
    return f"WHOLETURN_LOG={printable(level, 40)} is no level{guess}; {DEFAULT_LEVEL} is used"
