"""The ring of events and who reads it: ids, replay, filters, and what happens to one that is too slow."""

import json
from collections.abc import Sequence

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from acp_server.gateway.feed.event_frames import Origin
from acp_server.gateway.feed.feed import CUT_EVERY, Feed
from acp_server.gateway.feed.ring import Reader, Recent, Ring, Told, Wanted
from runtime.values.events import AgentText, HistoryTrimmed, Noticed

TRIM = HistoryTrimmed(1, 1, 1, "history turn limit exceeded", "count", "t-1")


def tell(feed: Feed, count: int, session_id: str = "s") -> None:
    for number in range(count):
        feed.publish(session_id, AgentText("m", str(number)))


def texts(found: Sequence[Told]) -> list[object]:
    """The frames by their text, else their type."""
    frames = [json.loads(told.json) for told in found]
    return [frame.get("text", frame["type"]) for frame in frames]


async def now(reader: Reader) -> list[object]:
    """What is there without waiting for more."""
    found: list[object] = []
    with trio.move_on_after(0.01):
        while some := await reader.some():
            found += texts(some)
    return found


async def test_a_reader_gets_what_comes_from_now_on(autojump_clock: trio.testing.MockClock) -> None:
    feed = Feed()
    tell(feed, 3)
    with feed.read() as reader:
        assert await now(reader) == []
        tell(feed, 2)
        assert await now(reader) == ["0", "1"]


async def test_who_comes_back_gets_what_it_missed_and_nothing_twice(
    autojump_clock: trio.testing.MockClock,
) -> None:
    feed = Feed()
    with feed.read() as reader:
        tell(feed, 5)
        seen = await reader.some()
    tell(feed, 2)
    with feed.read(after=seen[2].event_id) as reader:
        assert await now(reader) == ["3", "4", "0", "1"]
    with feed.read(after=feed.id_of(feed.ring.end - 1)) as reader:
        assert await now(reader) == []


async def test_what_left_the_ring_is_told_as_lost(autojump_clock: trio.testing.MockClock) -> None:
    feed = Feed(max_events=4)
    tell(feed, 10)
    with feed.read(after=feed.id_of(3)) as reader:
        found = await reader.some()
    assert texts(found) == ["events_lost", "6", "7", "8", "9"]
    lost = json.loads(found[0].json)
    assert (lost["lost"], lost["last_event_id"]) == (3, feed.id_of(3))
    with feed.read(after=lost["event_id"]) as reader:
        assert await now(reader) == ["6", "7", "8", "9"]


async def test_an_id_of_another_run_or_none_at_all_is_told_as_lost(
    autojump_clock: trio.testing.MockClock,
) -> None:
    feed = Feed()
    tell(feed, 2)
    for after in ("12345678-1", "nonsense", feed.id_of(99), f"{feed.id_of(1)}x", "9" * 10_000):
        with feed.read(after=after) as reader:
            found = await reader.some()
        assert texts(found) == ["events_lost", "0", "1"]
        lost = json.loads(found[0].json)
        assert "lost" not in lost
        assert len(lost["last_event_id"]) <= 80


async def test_a_reader_may_want_some_sessions_and_types(autojump_clock: trio.testing.MockClock) -> None:
    feed = Feed()
    with (
        feed.read(Wanted(sessions=frozenset({"b"}))) as one,
        feed.read(Wanted(types=frozenset({"noticed"}))) as other,
    ):
        tell(feed, 1, "a")
        tell(feed, 2, "b")
        feed.publish("a", Noticed("info", "hear"))
        assert await now(one) == ["0", "1"]
        assert await now(other) == ["noticed"]


async def test_a_slow_reader_is_cut_alone_and_can_come_back(autojump_clock: trio.testing.MockClock) -> None:
    feed = Feed(max_events=CUT_EVERY * 4)
    cut: list[str] = []
    with (
        feed.read(on_cut=lambda: cut.append("slow")) as slow,
        feed.read(on_cut=lambda: cut.append("fast")) as fast,
        feed.read(Wanted(types=frozenset({"noticed"})), on_cut=lambda: cut.append("picky")) as picky,
    ):
        got: list[object] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(picky.some)
            tell(feed, 1)
            first = await slow.some()
            for _ in range(10):
                tell(feed, CUT_EVERY)
                got += await now(fast)
                await wait_all_tasks_blocked()
            assert cut == ["slow"]
            assert await slow.some() == []
            feed.publish("s", Noticed("info", "enough"))
        assert len(got) == 1 + 10 * CUT_EVERY
    with feed.read(after=first[-1].event_id) as back:
        found = texts(await back.some())
    assert found[0] == "events_lost"
    assert len(found) == 1 + CUT_EVERY * 4


async def test_one_who_only_waits_is_told_what_it_lost_instead_of_being_cut() -> None:
    feed, found = Feed(max_events=4), []
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            with feed.read() as reader:
                found.extend(texts(await reader.some()))

        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        tell(feed, CUT_EVERY * 2)
    assert found[0] == "events_lost"
    assert len(found) == 5


async def test_the_end_of_the_feed_ends_all_readers() -> None:
    feed = Feed()
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            with feed.read() as reader:
                assert await reader.some() == []

        for _ in range(3):
            nursery.start_soon(read)
        await wait_all_tasks_blocked()
        feed.close()
    feed.publish("s", TRIM)
    assert feed.ring.end == 1


async def test_a_trim_is_told_once_whoever_tells_it_first(autojump_clock: trio.testing.MockClock) -> None:
    feed = Feed()
    with feed.read() as reader:
        feed.publish("s", TRIM)
        assert not feed.relay("s", TRIM, Origin())
        assert feed.relay("other", TRIM, Origin())
        assert await now(reader) == ["history_trimmed"] * 2


async def test_turns_of_this_process_are_known_and_told_with_their_origin() -> None:
    feed = Feed(lambda session_id: Origin(agent_alias="default", channel="acp"))
    with feed.read() as reader:
        feed.publish("s", AgentText("m", "hi"), turn_id="t1")
        feed.relay("s", AgentText("m", "hi"), Origin("t2"))
        here, there = (json.loads(told.json) for told in await reader.some())
    assert (here["turn_id"], here["agent_alias"], here["channel"]) == ("t1", "default", "acp")
    assert (there["turn_id"], "agent_alias" in there) == ("t2", False)
    assert (feed.ran_here("t1"), feed.ran_here("t2")) == (True, False)


async def test_publishing_never_raises() -> None:
    def broken(session_id: str) -> Origin:
        raise RuntimeError(session_id)

    feed = Feed(broken)
    feed.publish("s", TRIM)
    assert feed.ring.end == 1


async def test_a_chunk_is_bounded_and_the_rest_follows(autojump_clock: trio.testing.MockClock) -> None:
    feed = Feed()
    with feed.read() as reader:
        for _ in range(10):
            feed.publish("s", AgentText("m", "x" * 30_000))
        sizes = [len(await reader.some()) for _ in range(4)]
    assert sizes == [3, 3, 3, 1]


@given(st.integers(1, 8), st.integers(1, 300), st.lists(st.integers(0, 120), max_size=60))
def test_the_ring_keeps_the_newest_within_both_bounds(events: int, size: int, lengths: list[int]) -> None:
    ring = Ring(events, size)
    for number, length in enumerate(lengths, 1):
        ring.put(Told(number, str(number), "s", "t", b"x" * length))
    kept = list(ring.since(ring.begin))
    assert [told.number for told in kept] == list(range(ring.begin, len(lengths) + 1))
    assert len(kept) <= events
    assert len(kept) <= 1 or sum(len(told.stream) for told in kept) <= size
    if ring.begin > 1 and len(kept) < events:
        assert sum(lengths[ring.begin - 2 :]) > size


def test_recent_texts_are_bounded() -> None:
    recent = Recent(2)
    assert [recent.add(text) for text in ("a", "b", "a", "c", "b")] == [True, True, False, True, True]
    assert "a" not in recent
