"""One server's owner over a fake connection: tries, back-off, changes, calls, the end."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from runtime.mcp import server as module
from runtime.mcp.remote_tool import Offer, ServerTrouble
from runtime.mcp.server import DELAYS, STEADY, Server, State
from runtime.mcp.settings import ServerSettings
from tests.runtime.mcp.fakes import FakeWorld, tools
from tests.support.processes import until

BROKEN = ServerTrouble("it broke")


def made(*plan, **more):
    world = FakeWorld({"s": list(plan)})
    return world, Server(ServerSettings("s", **more), world.connect)


def names(server):
    return [tool.name for tool in server.offer.tools]


async def test_ready_then_stopped(nursery, autojump_clock):
    world, server = made(Offer(tools("a", "b")))
    nursery.start_soon(server.run)
    await server.settled.wait()
    assert (server.state, names(server)) == (State.READY, ["a", "b"])
    assert await server.call("a", {"x": 1}) == {"content": [{"type": "text", "text": "a: {'x': 1}"}]}
    server.stop()
    await wait_all_tasks_blocked()
    assert (server.state, names(server), world.closed) == (State.CLOSED, [], ["s"])
    with pytest.raises(ServerTrouble, match="is not there"):
        await server.call("a", {})


async def test_only_the_wanted_tools(nursery, autojump_clock):
    _, server = made(Offer(tools("a", "b", "c")), tools=("c", "a", "gone"))
    nursery.start_soon(server.run)
    await server.settled.wait()
    assert names(server) == ["a", "c"]
    server.stop()


async def test_tools_that_change_are_listed_again(nursery, autojump_clock):
    world, server = made(Offer(tools("a")))
    nursery.start_soon(server.run)
    await server.settled.wait()
    for _ in range(50):
        world.links["s"].change("a", "new")
    await trio.sleep(1)
    assert names(server) == ["a", "new"]
    assert world.links["s"].listed == 2
    server.stop()


async def test_back_off_and_then_rest(nursery, autojump_clock):
    world, server = made(BROKEN)
    nursery.start_soon(server.run)
    await trio.sleep(1000)
    waits = [round(sum(DELAYS[:n]), 3) for n in range(len(DELAYS) + 1)]
    assert world.times("s") == waits
    assert (server.state, server.problem) == (State.FAILED, "it broke")
    world.plans["s"] = [Offer(tools("a"))]
    server.retry()
    await wait_all_tasks_blocked()
    assert (server.state, server.problem, names(server)) == (State.READY, "", ["a"])
    server.retry()
    server.stop()


async def test_trouble_that_lasts_is_not_tried_again(nursery, autojump_clock):
    world, server = made(ServerTrouble("no such command", lasting=True))
    nursery.start_soon(server.run)
    await trio.sleep(1000)
    assert (world.times("s"), server.state) == ([0.0], State.FAILED)
    server.stop()


async def test_a_crash_is_mended_and_the_tools_stay_meanwhile(nursery, autojump_clock):
    world, server = made(Offer(tools("a")))
    nursery.start_soon(server.run)
    await server.settled.wait()
    world.links["s"].end("the process ended")
    await wait_all_tasks_blocked(0.01)
    assert (server.state, names(server), server.problem) == (State.WAITING, ["a"], "the process ended")
    with pytest.raises(ServerTrouble, match="the process ended"):
        await server.call("a", {})
    await trio.sleep(2)
    assert server.state is State.READY
    assert await server.resources()
    server.stop()


async def test_a_long_life_makes_old_failures_count_no_more(nursery, autojump_clock):
    world, server = made(Offer(tools("a")))
    nursery.start_soon(server.run)
    for _ in range(2 * len(DELAYS)):
        await trio.sleep(STEADY + 5)
        world.links["s"].end("again")
    await trio.sleep(5)
    assert server.state is State.READY
    server.stop()


async def test_crashes_in_a_row_end_in_failure(nursery, autojump_clock):
    world, server = made(Offer(tools("a")))
    nursery.start_soon(server.run)
    for _ in range(len(DELAYS) + 1):
        await trio.sleep(20)
        world.links["s"].end("again")
    await trio.sleep(50)
    assert (server.state, names(server)) == (State.FAILED, [])
    server.stop()


async def test_stopped_while_it_connects(nursery, autojump_clock):
    world, server = made(1e6, Offer())
    nursery.start_soon(server.run)
    await wait_all_tasks_blocked()
    server.stop()
    await server.settled.wait()
    assert (server.state, world.closed) == (State.CLOSED, [])


async def test_stopped_before_it_began(autojump_clock):
    world, server = made(Offer())
    server.stop()
    await server.run()
    assert world.links == {}


async def test_a_call_waits_for_the_connection_but_not_for_ever(nursery, autojump_clock):
    _, server = made(3.0, Offer(tools("a")))
    nursery.start_soon(server.run)
    assert await server.read("doc://a")
    server.stop()
    _, slow = made(1e6, Offer())
    nursery.start_soon(slow.run)
    began = trio.current_time()
    with pytest.raises(ServerTrouble, match="it does not answer yet"):
        await slow.call("a", {})
    assert trio.current_time() - began == module.PATIENCE
    slow.stop()


async def test_a_server_that_hangs_at_the_end_is_cut_off(nursery, autojump_clock):
    world, server = made(Offer(tools("a")))
    nursery.start_soon(server.run)
    await server.settled.wait()

    async def never() -> Offer:
        await trio.sleep_forever()
        raise AssertionError

    world.links["s"].offer = never
    world.links["s"].wake()
    await trio.sleep(1)
    began = trio.current_time()
    server.stop()
    await server.settled.wait()
    await until(lambda: server.state is State.CLOSED)
    assert trio.current_time() - began <= module.CLOSING + 0.1
