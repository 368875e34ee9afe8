"""The client of a connection as the core sees it: told what happens, asked for files.

Knows `Wire` only, nothing of how messages are encoded or written.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import trio

from acp_server.errors import ClientCallError
from acp_server.outbound import updates
from acp_server.wire_options import WireOptions
from runtime.events import Event, HistoryTrimmed

READ_METHOD = "fs/read_text_file"
READ_TIME_LIMIT = 10.0
"""Seconds to wait for a client's file before the disk is used: clients are known that never answer."""


class Wire(Protocol):
    """A connection's sending side."""

    async def notify(self, method: str, params: dict[str, object]) -> None:
        """Queue a notification, in order with all that was queued before; waits for a slow client."""
        ...

    def notify_nowait(self, method: str, params: dict[str, object]) -> None:
        """The same without waiting."""
        ...

    async def call(self, method: str, params: dict[str, object]) -> object:
        """Ask and wait for the result. Raises ClientCallError for an error reply or a lost connection."""
        ...


class AcpClient:
    """`runtime.ports.Client` over a connection; one for all sessions of that connection."""

    def __init__(self, wire: Wire, options: WireOptions) -> None:
        self._wire = wire
        self._options = options

    async def emit(self, session_id: str, event: Event) -> None:
        """Queue the event's messages. A trim is told whole or not at all, and nothing comes between."""
        first, *others = updates(session_id, event, self._options)
        await self._wire.notify(*first)
        for frame in others:
            if isinstance(event, HistoryTrimmed):
                self._wire.notify_nowait(*frame)
            else:
                await self._wire.notify(*frame)

    async def read_text_file(self, session_id: str, path: Path) -> str | None:
        """The file as the editor has it. None (use the disk) when it is not offered or does not come."""
        if not self._options.read_text_file:
            return None
        with trio.move_on_after(READ_TIME_LIMIT):
            try:
                params: dict[str, object] = {"sessionId": session_id, "path": str(path)}
                return _content(await self._wire.call(READ_METHOD, params))
            except ClientCallError:
                return None
        return None


def _content(result: object) -> str | None:
    content = result.get("content") if isinstance(result, Mapping) else None
    return content if isinstance(content, str) else None
