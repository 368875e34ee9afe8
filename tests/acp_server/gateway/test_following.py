"""What others record becomes events once: to the feed, and to connections that have the session open."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from acp_server.gateway.clients.other_processes import Follower
from acp_server.gateway.clients.reading_places import Known, last_place, last_turn, start_of_news
from acp_server.gateway.feed.feed import Feed
from acp_server.gateway.feed.interest import Interest
from acp_server.gateway.feed.ring import Reader
from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import copy_session
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import ResourceNotFound
from runtime.values.events import Event, HistoryTrimmed
from runtime.values.profiles import Profile
from runtime.values.stored import HeadChange, SessionRecord, Store, StoredEntry
from tests.support.fakes import RecordingClient, ask, make_setup, script

CREATED = "2025-12-31T12:00:00.000Z"
"""When all sessions of these tests were; their turns end at `fakes.TIME`, which is later."""
BEGAN = "2025-12-31T00:00:00.000Z"
"""When a follower began to which they are new."""
LATER = "2026-06-01T00:00:00.000Z"
"""When one began to which they are old."""
PATIENCE = 10.0


def session_of(store: Store, session_id: str = "s", **profile: int) -> tuple[Session, RecordingClient]:
    """A session of another process: nothing but the store is shared."""
    client = RecordingClient()
    setup = make_setup(script(loop=True, echo="{last}"), Profile(**profile))  # type: ignore[arg-type]
    return Session(Conversation(session_id, Path("/project"), setup, store, client)), client


async def made(store: Store, session_id: str = "s") -> None:
    await store.create_session(SessionRecord(session_id, "/project", CREATED, CREATED))


@asynccontextmanager
async def following(
    store: Store, feed: Feed, began: str = BEGAN, known: Callable[[str], Known | None] = lambda _: None
) -> AsyncIterator[tuple[Reader, list[tuple[str, Event]]]]:
    """A follower that runs; gives a reader of its feed, and what is delivered."""
    delivered: list[tuple[str, Event]] = []

    async def deliver(session_id: str, event: Event) -> None:
        await trio.lowlevel.checkpoint()
        delivered.append((session_id, event))

    feed.interest = Interest(now=lambda: began)
    follower = Follower(store, feed, deliver, known)
    with feed.read() as reader:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follower.run)
            with trio.fail_after(PATIENCE):
                while not follower.following:  # noqa: ASYNC110 - a thread's work among it
                    await trio.sleep(0.01)
            yield reader, delivered
            nursery.cancel_scope.cancel()


async def frames_until(reader: Reader, last: Callable[[dict[str, object]], bool]) -> list[dict[str, object]]:
    """The frames up to the one that is waited for."""
    found: list[dict[str, object]] = []
    with trio.fail_after(PATIENCE):
        while not found or not last(found[-1]):
            found += [json.loads(told.json) for told in await reader.some()]
    return found


def is_end(frame: dict[str, object]) -> bool:
    return frame["type"] == "title_changed"


def kinds(frames: list[dict[str, object]]) -> list[object]:
    return [frame["type"] for frame in frames]


async def test_a_turn_of_another_process_is_told_and_delivered() -> None:
    store = MemoryStore()
    await made(store)
    session, _ = session_of(store)
    async with following(store, Feed()) as (reader, delivered):
        await ask(session, "hello")
        frames = await frames_until(reader, is_end)
        await trio.testing.wait_all_tasks_blocked()
    assert kinds(frames) == ["user_message", "agent_text", "title_changed"]
    assert frames[1]["text"] == "hello"
    assert frames[2]["title"] == "hello"
    assert len({frame["turn_id"] for frame in frames}) == 1
    assert [session_id for session_id, _ in delivered] == ["s"] * 3


async def test_two_processes_on_one_file(tmp_path: Path) -> None:
    here, there = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    await made(there)
    session, client = session_of(there, max_history_messages=2)
    try:
        async with following(here, Feed()) as (reader, delivered):
            for number in range(3):
                await ask(session, f"{number}")
                frames = await frames_until(reader, is_end)
            await trio.testing.wait_all_tasks_blocked(0.02)
        (trim,) = client.trims()
        told = next(frame for frame in frames if frame["type"] == "history_trimmed")
        (sent,) = [event for _, event in delivered if isinstance(event, HistoryTrimmed)]
        assert kinds(frames).index("history_trimmed") < kinds(frames).index("agent_text")
        for name in ("dropped_messages", "dropped_turns", "kept_turns", "reason", "strategy", "trim_id"):
            assert told[name] == getattr(trim, name) == getattr(sent, name)
    finally:
        await here.aclose()
        await there.aclose()


async def test_of_an_older_session_only_what_is_new_is_told() -> None:
    store = MemoryStore()
    await made(store)
    session, _ = session_of(store)
    for text in ("old", "older"):
        await ask(session, text)
    async with following(store, Feed(), LATER) as (reader, _):
        await store.append("s", (), head=HeadChange(state="{}"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        await store.append("s", (), head=HeadChange(updated_at=LATER))
        session, _ = session_of(store)
        await ask(session, "new")
        frames = await frames_until(reader, is_end)
    assert frames[0]["block"] == {"type": "text", "text": "new"}


async def test_two_turns_between_two_looks_are_both_told(tmp_path: Path) -> None:
    here, there = (SqliteStore(tmp_path / "sessions.db") for _ in range(2))
    try:
        await made(there)
        session, _ = session_of(there)
        await ask(session, "old")
        async with following(here, Feed(), LATER) as (reader, _):
            copy = MemoryStore()
            await made(copy)
            session, _ = session_of(copy)
            for text in ("first", "second"):
                await ask(session, text)
            head = HeadChange(updated_at=LATER)
            await there.append("s", await copy.entries("s"), head=head)
            frames = await frames_until(reader, is_end)
            if not any(frame.get("block") == {"type": "text", "text": "second"} for frame in frames):
                frames += await frames_until(reader, is_end)
    finally:
        await here.aclose()
        await there.aclose()
    said = [frame["block"]["text"] for frame in frames if frame["type"] == "user_message"]  # type: ignore[index]
    assert said == ["first", "second"]


async def test_what_this_process_told_itself_is_not_told_again() -> None:
    store, feed = MemoryStore(), Feed()
    await made(store)
    session, client = session_of(store)
    other, _ = session_of(store)

    async def emit(session_id: str, event: Event) -> None:
        feed.publish(
            session_id, event, turn_id=recorder.turn_id if (recorder := talk.notes.recorder) else None
        )
        await RecordingClient.emit(client, session_id, event)

    talk = session.conversation
    talk.client = type("Publishing", (RecordingClient,), {"emit": lambda _, *given: emit(*given)})()
    known = {"s": Known(alone=True, seen=0, taken_at=0)}
    async with following(store, feed, known=known.get) as (reader, delivered):
        await ask(session, "mine")
        mine = await frames_until(reader, is_end)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert delivered == []
        known["s"] = Known(alone=False, seen=0, taken_at=0)
        await ask(other, "theirs")
        theirs = await frames_until(reader, is_end)
    assert "user_message" not in kinds(mine)
    assert kinds(theirs) == ["user_message", "agent_text", "title_changed"]


async def test_of_a_session_that_is_held_here_nothing_is_read() -> None:
    store = MemoryStore()
    await made(store)
    session, _ = session_of(store)
    known = {"s": Known(alone=True, seen=1000, taken_at=0)}
    async with following(store, Feed(), known=known.get) as (_, delivered):
        await ask(session, "mine")
        await trio.testing.wait_all_tasks_blocked(0.01)
    assert delivered == []


async def test_who_has_it_open_gets_what_came_behind_the_part_that_it_was_shown() -> None:
    store = MemoryStore()
    await made(store)
    session, _ = session_of(store)
    for text in ("one", "two"):
        await ask(session, text)
    seen = await last_place(store, "s")
    await ask(session, "three")
    known = {"s": Known(alone=False, seen=seen, taken_at=-1)}
    async with following(store, Feed(), LATER, known.get) as (reader, _):
        await ask(session, "four")
        frames = await frames_until(reader, lambda frame: is_end(frame) and frame["title"] == "one")
    texts = [frame["text"] for frame in frames if frame["type"] == "agent_text"]
    assert texts[0] == "three"


async def test_a_session_that_was_deleted_meanwhile_ends_nothing() -> None:
    store = MemoryStore()
    await made(store)
    await made(store, "other")
    async with following(store, Feed()) as (reader, _):
        await store.append("s", (), head=HeadChange(title="t"))
        await store.delete_session("s")
        session, _ = session_of(store, "other")
        await ask(session, "hello")
        assert kinds(await frames_until(reader, is_end))[0] == "user_message"


async def test_trouble_with_one_session_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Troubled(MemoryStore):
        async def session(self, session_id: str) -> SessionRecord | None:
            if session_id == "s":
                raise ResourceNotFound("It cannot be read.")
            return await super().session(session_id)

    store = Troubled()
    await made(store)
    await made(store, "other")
    async with following(store, Feed()) as (reader, _):
        await store.append("s", (), head=HeadChange(title="t"))
        session, _ = session_of(store, "other")
        await ask(session, "hello")
        assert is_end((await frames_until(reader, is_end))[-1])
    assert "cannot be followed" in caplog.text


async def test_the_end_of_the_store_ends_the_follower() -> None:
    store, feed = MemoryStore(), Feed()
    with trio.fail_after(PATIENCE), feed.read():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Follower(store, feed, no_delivery).run)
            await trio.testing.wait_all_tasks_blocked()
            await store.aclose()


async def no_delivery(session_id: str, event: Event) -> None:
    raise AssertionError


async def test_a_copy_brings_no_news() -> None:
    store = MemoryStore()
    await made(store)
    session, _ = session_of(store)
    await ask(session, "one")
    source = await store.session("s")
    assert source is not None
    copy = await copy_session(store, source, now=LATER)
    assert await start_of_news(store, copy, BEGAN) == await last_place(store, copy.session_id)


async def test_a_new_session_is_told_from_its_beginning() -> None:
    store = MemoryStore()
    await made(store)
    record = await store.session("s")
    assert record is not None
    assert await start_of_news(store, record, BEGAN) == 0
    entries = [StoredEntry(turn, f"turn:{turn}:prompt", "prompt", b"{}") for turn in ("a", "b")]
    await store.append("s", entries)
    assert await start_of_news(store, record, BEGAN) == 0
    assert await start_of_news(store, record, LATER) == 1


@given(st.lists(st.integers(1, 300), max_size=5))
def test_the_last_turn_is_found(lengths: list[int]) -> None:
    async def look() -> None:
        store = MemoryStore()
        await made(store)
        for turn, length in enumerate(lengths):
            entries = [StoredEntry(str(turn), f"{turn}:{at}", "runtime", b"{}") for at in range(length)]
            await store.append("s", entries)
        last = await last_place(store, "s")
        assert last == sum(lengths)
        assert len(await last_turn(store, "s", last)) == (lengths[-1] if lengths else 0)

    trio.run(look)
