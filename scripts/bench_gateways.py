"""What a turn costs over a gateway while others serve from the same store: alone, and as one of eight.

Each gateway is a process with one client, which works in a session of its own. A turn is a prompt and a text
of the scripted model. What the others do meanwhile shows in the time, and in the transactions of a PostgreSQL
server.
"""

import contextlib
import time
from pathlib import Path

import trio

from bench_fleet import asked
from bench_rig import Rig
from bench_table import Row, median
from tests.process.gateways import Gateway, Socket, gateway, in_folder
from tests.process.homes import Home
from tests.support.postgres import Server, programs

MANY = 8
BOUND = 1.5
REPORT_SECONDS = 11.0
"""A PostgreSQL server counts the last transactions of a connection when that has been idle for ten
seconds.
"""
_COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


async def joined(stack: contextlib.AsyncExitStack, made: Gateway, work: Path) -> tuple[Socket, str]:
    """A client of a gateway with a session of its own."""
    socket = await stack.enter_async_context(made.socket("/acp", "acp"))
    await socket.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session: str = (await socket.call("session/new", in_folder(work)))["sessionId"]
    await say(socket, session, "begin")
    return socket, session


async def say(socket: Socket, session: str, text: str) -> None:
    """A turn."""
    prompt = [{"type": "text", "text": text}]
    await socket.call("session/prompt", {"sessionId": session, "prompt": prompt})


async def turns(home: Home, gateways: int, count: int, server: Server | None) -> tuple[float, float]:
    """(milliseconds, transactions) of a turn at the first of so many gateways."""
    seen: list[float] = []
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for _ in range(gateways):
            made = await stack.enter_async_context(gateway(home))
            clients.append(await joined(stack, made, home.work))
        socket, session = clients[0]
        before = await transactions(server)
        for number in range(count):
            begun = time.perf_counter()
            await say(socket, session, f"turn {number}")
            seen.append(1e3 * (time.perf_counter() - begun))
        after = await transactions(server)
    return median(seen), (after - before) / count


async def transactions(server: Server | None) -> float:
    """How many there have been; waits until all of them are told."""
    if server is None:
        return 0.0
    await trio.sleep(REPORT_SECONDS)
    return asked(server, _COMMITS)


def compared(folder: Path, name: str, count: int, server: Server | None = None) -> list[Row]:
    """Eight gateways beside one, each time with a store of its own."""
    found = []
    for gateways in (1, MANY):
        (folder / f"{name}-{gateways}").mkdir()
        home = Home(folder / f"{name}-{gateways}")
        home.script(echo="{turn}: you said {last}")
        if server is not None:
            home.extra_env["WHOLETURN_STORE"] = server.address()
        found.append(trio.run(turns, home, gateways, count, server))
    one, many = found
    rows = [Row(f"a turn, {MANY} gateways on {name}", many[0], one[0], "one gateway", bound=BOUND)]
    if server is not None:
        rows.append(Row("  its transactions", many[1], one[1], "one gateway", unit="", bound=BOUND))
    return rows


def section(rig: Rig) -> list[Row]:
    """On a file, and on a PostgreSQL server of our own where there is one."""
    count = 20 if rig.quick else 60
    rows = compared(rig.folder, "a file", count)
    if programs() is None:
        return rows
    server = Server()
    try:
        server.start()
        return rows + compared(rig.folder, "PostgreSQL", count, server)
    finally:
        server.remove()
