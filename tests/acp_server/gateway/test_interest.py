"""The store is watched and read for those who follow, and for nobody else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from acp_server.gateway.clients.other_processes import CHECK_SECONDS, GATHER_SECONDS, Follower
from acp_server.gateway.clients.reading_places import Known
from acp_server.gateway.feed.feed import Feed
from acp_server.gateway.feed.interest import LINGER_SECONDS, Interest
from acp_server.gateway.feed.ring import Reader, Wanted
from runtime.store.memory import MemoryStore
from runtime.values.events import AgentText, Event
from runtime.values.stored import SessionRecord, StoredEntry
from tests.acp_server.gateway.test_following import CREATED, LATER, kinds, made, session_of
from tests.acp_server.gateway.test_following import frames_until as frames_to
from tests.support.fakes import ask


class Counting(MemoryStore):
    """Counts who watches it, and of which sessions it was asked something."""

    def __init__(self) -> None:
        super().__init__()
        self.watching = 0
        self.asked: list[str] = []

    async def session(self, session_id: str) -> SessionRecord | None:
        self.asked.append(session_id)
        return await super().session(session_id)

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        self.asked.append(session_id)
        return await super().entries(session_id, after=after, limit=limit)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[frozenset[str]]]:
        self.watching += 1
        try:
            async with super().watch() as changes:
                yield changes
        finally:
            self.watching -= 1


class Rig:
    """A store, a follower on it, and the session `s` of another process."""

    def __init__(self, known: Known | None = None) -> None:
        self.store = Counting()
        self.feed = Feed(now=lambda: LATER)
        self.delivered: list[Event] = []
        self.known = known

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        for name in ("s", "other"):
            await made(self.store, name)
            session, _ = session_of(self.store, name)
            await ask(session, "old")
        self.store.asked.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Follower(self.store, self.feed, self._deliver, lambda _: self.known).run)
            await wait_all_tasks_blocked()
            yield
            nursery.cancel_scope.cancel()

    async def turn(self, text: str, session_id: str = "s") -> list[str]:
        """A turn of the other process; gives what the store was asked for on its behalf."""
        self.store.asked.clear()
        session, _ = session_of(self.store, session_id)
        await ask(session, text)
        own = len(self.store.asked)
        await trio.sleep(3 * GATHER_SECONDS)
        return self.store.asked[own:]

    async def _deliver(self, session_id: str, event: Event) -> None:
        await trio.lowlevel.checkpoint()
        self.delivered.append(event)


async def said(reader: Reader, count: int) -> list[object]:
    """The prompts of the next turns."""
    ends = 0

    def is_last(frame: dict[str, object]) -> bool:
        nonlocal ends
        ends += frame["type"] == "title_changed"
        return ends == count

    frames = await frames_to(reader, is_last)
    return [frame["block"]["text"] for frame in frames if frame["type"] == "user_message"]  # type: ignore[index]


async def test_while_nobody_follows_the_store_is_left_alone(autojump_clock: MockClock) -> None:
    rig = Rig()
    async with rig.running():
        assert await rig.turn("one") == []
        assert rig.store.watching == 0
        with rig.feed.read() as reader:
            await wait_all_tasks_blocked()
            assert rig.store.watching == 1
            assert await rig.turn("two") != []
            assert await said(reader, 1) == ["two"]


async def test_who_left_is_counted_for_a_while(autojump_clock: MockClock) -> None:
    rig = Rig()
    async with rig.running():
        with rig.feed.read() as reader:
            await wait_all_tasks_blocked()
            await rig.turn("one")
            seen = await reader.some()
        await trio.sleep(LINGER_SECONDS * 0.9)
        await rig.turn("two")
        with rig.feed.read(after=seen[-1].event_id) as reader:
            assert await said(reader, 1) == ["two"]
        await trio.sleep(LINGER_SECONDS * 1.1)
        assert rig.store.watching == 0
        assert await rig.turn("three") == []


async def test_who_comes_back_too_late_is_told_so_and_gets_what_is_new(autojump_clock: MockClock) -> None:
    rig = Rig()
    async with rig.running():
        with rig.feed.read() as reader:
            await wait_all_tasks_blocked()
            await rig.turn("one")
            seen = await reader.some()
        await trio.sleep(LINGER_SECONDS * 1.1)
        await rig.turn("two")
        rig.feed.publish("mine", AgentText("m", "here"))
        with rig.feed.read(after=seen[-1].event_id) as reader:
            await wait_all_tasks_blocked()
            await rig.turn("three")
            frames = await frames_to(reader, lambda frame: frame["type"] == "title_changed")
        assert kinds(frames) == ["events_lost", "agent_text", "user_message", "agent_text", "title_changed"]
        assert "lost" not in frames[0]
        assert frames[2]["block"] == {"type": "text", "text": "three"}
        # Told once: who asks again behind that frame has missed nothing.
        with rig.feed.read(after=str(frames[0]["event_id"])) as reader:
            assert kinds([*await frames_to(reader, lambda _: True)])[0] == "agent_text"


async def test_of_a_session_that_nobody_wants_nothing_is_read(autojump_clock: MockClock) -> None:
    rig = Rig()
    async with rig.running():
        with rig.feed.read(Wanted(sessions=frozenset({"s"}))) as reader:
            await wait_all_tasks_blocked()
            assert await rig.turn("one", "other") == []
            assert set(await rig.turn("two")) == {"s"}
            assert await said(reader, 1) == ["two"]


async def test_a_connection_hears_of_its_own_session_while_nobody_reads_the_feed(
    autojump_clock: MockClock,
) -> None:
    rig = Rig(Known(alone=False, seen=3, taken_at=-1))
    async with rig.running():
        rig.feed.interest.come(frozenset({"s"}), reads=False)
        await wait_all_tasks_blocked()
        rig.delivered.clear()
        assert await rig.turn("one", "other") == []
        await rig.turn("two")
        assert [type(event).__name__ for event in rig.delivered] == [
            "UserMessage",
            "AgentText",
            "TitleChanged",
        ]
        rig.feed.interest.go(frozenset({"s"}), reads=False)
        await wait_all_tasks_blocked()
        assert rig.store.watching == 0


async def test_where_only_this_process_writes_nobody_is_followed(autojump_clock: MockClock) -> None:
    rig = Rig(Known(alone=True, seen=3, taken_at=0))
    async with rig.running():
        rig.feed.interest.come(frozenset({"s"}), reads=False)
        await trio.sleep(2 * CHECK_SECONDS)
        assert rig.store.watching == 0
        await rig.turn("another process went past")
        rig.known = Known(alone=False, seen=3, taken_at=0)
        await trio.sleep(2 * CHECK_SECONDS)
        texts = [event.text for event in rig.delivered if isinstance(event, AgentText)]
        assert texts[-1] == "another process went past"
        rig.known = Known(alone=True, seen=9, taken_at=9)
        await trio.sleep(2 * CHECK_SECONDS)
        assert rig.store.watching == 0


async def test_what_was_done_before_the_watch_began_is_told(autojump_clock: MockClock) -> None:
    rig = Rig()
    async with rig.running():
        with rig.feed.read() as reader:
            # The follower has not had its turn yet.
            copy = MemoryStore()
            await made(copy, "new")
            session, _ = session_of(copy, "new")
            await ask(session, "at once")
            later = LATER.replace("00.000", "01.000")
            await rig.store.create_session(SessionRecord("new", "/project", LATER, later))
            await rig.store.append("new", await copy.entries("new"))
            assert await said(reader, 1) == ["at once"]


@pytest.mark.parametrize(("sessions", "takes"), [((), True), (("s",), True), (("a", "b"), False)])
async def test_a_party_takes_what_it_came_for(sessions: tuple[str, ...], takes: bool) -> None:
    interest = Interest(now=lambda: CREATED)
    assert not interest.takes("s")
    interest.come(frozenset(sessions))
    assert interest.takes("s") is takes
    assert (interest.since("s") == CREATED) or not takes


async def test_a_party_is_as_old_as_the_first_who_came(autojump_clock: MockClock) -> None:
    times = iter(("1", "2", "3", "4"))
    ended: list[str] = []
    interest = Interest(lambda: ended.append("end"), now=lambda: next(times))
    everything: frozenset[str] = frozenset()
    for _ in range(2):
        interest.come(everything)
    interest.go(everything)
    assert interest.since("s") == "1"
    interest.go(everything)
    await trio.sleep(LINGER_SECONDS + 1)
    interest.come(everything)
    assert (interest.since("s"), ended) == ("2", ["end"])
