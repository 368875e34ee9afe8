"""Lets a client that speaks over pipes talk to a gateway: lines on stdin and stdout, frames on the socket.

`python bridge.py URL TOKEN`. A program of its own; ends when either side does.
"""

import os
import sys

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url


async def bridge(url: str, token: str) -> None:
    """Carry both ways."""
    headers = [(b"authorization", f"Bearer {token}".encode())]
    async with (
        open_websocket_url(f"{url}/acp", extra_headers=headers) as socket,
        trio.lowlevel.FdStream(os.dup(1)) as out,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(upward, socket, nursery.cancel_scope)
        await downward(socket, out)
        nursery.cancel_scope.cancel()


async def upward(socket: WebSocketConnection, over: trio.CancelScope) -> None:
    """Lines to frames."""
    held = b""
    async with trio.lowlevel.FdStream(os.dup(0)) as source:
        while piece := await source.receive_some(65536):
            *lines, held = (held + piece).split(b"\n")
            for line in lines:
                await socket.send_message(line.decode())
    over.cancel()


async def downward(socket: WebSocketConnection, out: trio.lowlevel.FdStream) -> None:
    """Frames to lines."""
    try:
        while True:
            message = await socket.get_message()
            await out.send_all((message if isinstance(message, bytes) else message.encode()) + b"\n")
    except ConnectionClosed:
        return


if __name__ == "__main__":
    trio.run(bridge, sys.argv[1], sys.argv[2])
