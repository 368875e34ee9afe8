"""A store that stands still at any write of a turn: a cancel is heard, nothing answered is lost untold."""

from collections.abc import Callable

import pytest
import trio

from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.store.resilient.standstill import PATIENCE_SECONDS
from runtime.store.resilient.store import ResilientStore
from runtime.values.errors import StoreError
from runtime.values.events import AgentText, Event, Noticed
from runtime.values.stored import Store
from tests.support.fakes import EchoTool, RecordingClient, ask, call, make_session, script
from tests.support.stalling import Stalling

HEARD_SECONDS = 1.0
"""How long a cancel may take to be answered."""
WRITES = range(2, 8)
"""The writes of the turn below, behind that which makes the session."""


class Stopping(RecordingClient):
    """Stops the store as soon as the answer is shown."""

    def __init__(self, inner: Stalling) -> None:
        super().__init__()
        self._inner = inner

    async def emit(self, session_id: str, event: Event) -> None:
        await super().emit(session_id, event)
        if isinstance(event, AgentText):
            self._inner.stand_still()


class Deaf(RecordingClient):
    """Takes nothing that it is told."""

    async def emit(self, session_id: str, event: Event) -> None:
        await trio.sleep_forever()


def provider():
    return script({"calls": [call("a")]}, {"text": "the answer", "delay": 0.3}, {"text": "next"})


async def session_over(
    inner: Stalling, *, resilient: bool = True
) -> tuple[Session, RecordingClient, Callable[[], list[str]]]:
    """A session, its client, and what the person was told of the store."""
    told: list[str] = []
    store: Store = ResilientStore(inner, on_trouble=told.append) if resilient else inner
    session, client, _ = await make_session(provider(), tools=[EchoTool()], store=store)

    def heard() -> list[str]:
        return told

    return session, client, heard


async def kinds(store: MemoryStore) -> list[str]:
    """What is stored of the session, a partial text left out: whether there is one is a matter of time."""
    return [line.kind for line in await store.entries("s") if line.kind != "partial"]


async def undisturbed() -> list[str]:
    """What is stored of the turn in good days."""
    inner = Stalling()
    session, _, _ = await session_over(inner)
    await ask(session, "go")
    assert inner.asked == WRITES.stop - 1
    return await kinds(inner)


@pytest.mark.parametrize("seconds", [5, 22, 40])
@pytest.mark.parametrize("at", WRITES)
async def test_a_turn_is_answered_and_all_of_it_is_stored_in_the_end(autojump_clock, at, seconds):
    inner = Stalling((at, seconds))
    session, client, told = await session_over(inner)
    began = trio.current_time()
    assert await ask(session, "go") == "end_turn"
    stalled = inner.asked >= at
    assert client.text() == "the answer"
    assert trio.current_time() - began <= min(seconds, PATIENCE_SECONDS) + 2
    kept = stalled and seconds > PATIENCE_SECONDS
    assert [bool(told()), inner.stands_still] == [kept, kept]
    await trio.sleep(seconds + 1)
    assert await kinds(inner) == await undisturbed()
    assert bool(told()) == kept


@pytest.mark.parametrize("at", WRITES)
async def test_a_cancel_is_heard_and_the_next_prompt_is_answered(autojump_clock, at):
    inner = Stalling((at, 40))
    session, _, told = await session_over(inner)
    answers: list[str] = []

    async def first() -> None:
        answers.append(await ask(session, "go"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await trio.sleep(2)
        began = trio.current_time()
        session.cancel()
    assert trio.current_time() - began <= HEARD_SECONDS
    assert answers == (["cancelled"] if inner.stands_still else ["end_turn"])
    assert bool(told()) == inner.stands_still
    began = trio.current_time()
    assert await ask(session, "again") == "end_turn"
    assert trio.current_time() - began <= HEARD_SECONDS
    await trio.sleep(60)
    stored = await kinds(inner)
    assert [stored.count("prompt"), stored.count("end"), stored[-1]] == [2, 2, "end"]
    assert len({line.key for line in await inner.entries("s")}) == len(await inner.entries("s"))


async def test_what_the_end_of_a_turn_has_to_tell_of_its_store_comes_before_the_answer(autojump_clock):
    inner = Stalling()
    session, _, _ = await session_over(inner)
    client = session.conversation.client = Stopping(inner)
    store = session.conversation.store
    assert isinstance(store, ResilientStore)

    def tell(text: str) -> None:
        session.conversation.pending.append(Noticed("warning", "Session store", text))

    store._backlog._on_trouble = tell
    assert await ask(session, "go") == "end_turn"
    assert [event.title for event in client.events if isinstance(event, Noticed)] == ["Session store"]


@pytest.mark.parametrize("at", WRITES)
async def test_a_store_that_keeps_nothing_is_waited_for_unless_cancelled(autojump_clock, at):
    inner = Stalling((at, 40))
    session, _, _ = await session_over(inner, resilient=False)
    began = trio.current_time()
    assert await ask(session, "go") == "end_turn"
    waited = trio.current_time() - began
    assert (waited >= 40) == (inner.asked >= at)
    assert await kinds(inner) == await undisturbed()


@pytest.mark.parametrize("at", WRITES)
async def test_a_store_that_keeps_nothing_lets_a_cancel_go_soon(autojump_clock, at):
    inner = Stalling((at, 40))
    session, _, _ = await session_over(inner, resilient=False)
    answers: list[str] = []

    async def first() -> None:
        answers.append(await ask(session, "go"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await trio.sleep(2)
        began = trio.current_time()
        session.cancel()
    assert trio.current_time() - began <= 2
    assert answers == (["cancelled"] if inner.stands_still else ["end_turn"])


async def test_an_end_that_is_refused_is_an_error_and_never_done(autojump_clock):
    class Refusing(MemoryStore):
        async def append(self, session_id, entries, **given):
            if any(one.kind == "end" for one in entries):
                raise StoreError("no")
            await super().append(session_id, entries, **given)

    session, _, _ = await make_session(provider(), tools=[EchoTool()], store=Refusing())
    with pytest.raises(StoreError, match=r"^no$"):
        await ask(session, "go")


async def test_a_client_who_does_not_read_keeps_nothing_from_being_recorded(autojump_clock):
    session, _, store = await make_session(provider(), tools=[EchoTool()])
    session.conversation.client = Deaf()
    answers: list[str] = []

    async def first() -> None:
        answers.append(await ask(session, "/local"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await trio.sleep(1)
        began = trio.current_time()
        session.cancel()
    assert [answers, trio.current_time() - began <= HEARD_SECONDS] == [["cancelled"], True]
    assert [line.kind for line in await store.entries("s")][-1] == "end"
