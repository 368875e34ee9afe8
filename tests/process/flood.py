"""A gateway whose feed is told a lot, for load tests: DATA_DIR, EVENTS, SIZE and READERS are its arguments.

Everything is the gateway's own but for where the events are from: here they come as fast as that many readers
take them, whoever else there is, so many for each line on stdin. The first line of its output is the port;
then one comes when all of them are told.
"""

import os
import sys
from pathlib import Path

import trio

from acp_server.config.settings import GatewaySettings, Options
from acp_server.gateway.feed.feed import RING_EVENTS, Feed
from acp_server.gateway.serve import make_state, serve_until
from acp_server.gateway.token import read_or_make
from runtime.values.events import AgentText

AT_ONCE = 250
MAX_LAG = RING_EVENTS // 2
"""Events that the slowest of those readers may be behind."""


async def main(folder: Path, *numbers: int) -> None:
    """Serve until stdin ends."""
    count, size, readers = numbers
    token, _ = read_or_make(folder / "gateway.token")
    stop = trio.Event()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=512)
    async with trio.open_nursery() as nursery:
        settings = GatewaySettings(requests_per_second=1000)
        state = make_state(Options(), os.environ, settings, token, nursery)
        nursery.start_soon(serve_until, stop, state, listeners)
        say(listeners[0].socket.getsockname()[1])
        while await trio.to_thread.run_sync(sys.stdin.readline):
            await flood(state.feed, count, "x" * size, readers)
            say("told")
        stop.set()


async def flood(feed: Feed, count: int, text: str, readers: int) -> None:
    """Tell so many events."""
    for number in range(count):
        feed.publish("s", AgentText("m", text), turn_id="t")
        if number % AT_ONCE == 0:
            await trio.sleep(0.01)
            while feed.ring.end - sorted(feed.places)[-readers] > MAX_LAG:  # noqa: ASYNC110 - it tells nobody
                await trio.sleep(0.05)


def say(what: object) -> None:
    """A line on stdout."""
    print(what, flush=True)  # noqa: T201 - who started this reads it


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), *(int(text) for text in sys.argv[2:5]))
