"""Two windows on one session: one writes, the other reads, and whoever goes on knows what was said."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.lease import LeasedStore, new_holder, noting
from runtime.conversation.load_and_fork import read_state, replay, restore
from runtime.embed.agent import FunctionTool
from runtime.ports import Tool
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.session.session import Session
from runtime.store.common.leases import LEASE_SECONDS
from runtime.store.memory import MemoryStore
from runtime.store.sqlite.store import SqliteStore
from runtime.values.errors import LeaseLost, SessionBusy
from runtime.values.events import AgentText, Event, Noticed
from runtime.values.profiles import Profile
from runtime.values.stored import SessionRecord, Store
from tests.contracts.test_store_leases import Clock
from tests.support.fakes import TIME, RecordingClient, ask, make_setup, prompt, script

STORES: dict[str, Callable[[Path, Clock], Store]] = {
    "memory": lambda _path, clock: MemoryStore(clock),
    "sqlite": lambda p, c: SqliteStore(p, clock=c),
}


class Watched(RecordingClient):
    """A client that says when the first text has come."""

    __slots__ = ("begun",)

    def __init__(self) -> None:
        super().__init__()
        self.begun = trio.Event()

    async def emit(self, session_id: str, event: Event) -> None:
        await super().emit(session_id, event)
        if isinstance(event, AgentText):
            self.begun.set()


class Window:
    """One opened session as one process has it."""

    def __init__(
        self,
        store: Store,
        head: SessionRecord,
        name: str,
        provider: ScriptedProvider,
        limit: int,
        tools: Sequence[Tool] = (),
    ) -> None:
        self.provider = provider
        self.client = Watched()
        self.store = LeasedStore(store, "s", new_holder(name))
        setup = make_setup(provider, Profile(max_history_messages=limit), tools)
        state = read_state(head.state)
        self.talk = Conversation(
            "s", Path("/p"), setup, self.store, self.client, state=state, title=head.title
        )
        self.session = Session(self.talk, lease=self.store.lease)

    async def ask(self, text: str) -> str:
        """A prompt; the answer."""
        before = len(self.client.text())
        assert await ask(self.session, text) == "end_turn"
        return self.client.text()[before:]

    def seen(self) -> list[str]:
        """The user's rows in the last request."""
        return [row.content for row in self.provider.requests[-1].rows() if row.role == "user"]

    def notices(self) -> list[str]:
        """What the person was told beside the conversation."""
        return [event.title for event in self.client.events if isinstance(event, Noticed)]


@pytest.fixture
def clock():
    """The store's clock."""
    return Clock()


@pytest.fixture(params=STORES)
async def store(request, tmp_path, clock):
    """Each store in turn, with one session."""
    made = STORES[request.param](tmp_path / "s.db", clock)
    await made.create_session(SessionRecord("s", "/p", TIME, TIME))
    yield made
    await made.aclose()


async def window(
    store: Store, name: str, *, limit: int = 50, replies: Sequence[object] = (), tools: Sequence[Tool] = ()
) -> Window:
    """A window that has loaded the session."""
    head = await store.session("s")
    assert head is not None
    provider = script(*replies, echo=f"{name} heard it") if replies else script(echo=f"{name} heard it")
    made = Window(store, head, name, provider, limit, tools)
    with noting(made.store):
        await restore(made.talk)
    return made


async def test_the_second_window_reads_and_its_prompt_is_refused_by_name(store):
    zed, toad = await window(store, "Zed"), await window(store, "Toad")
    assert await zed.ask("one") == "Zed heard it"
    stored = await store.entries("s")
    with pytest.raises(SessionBusy, match="in use by Zed"):
        await ask(toad.session, "mine")
    await replay(toad.talk)
    assert "Zed heard it" in toad.client.text()
    assert any("in use by Zed" in event.text for event in toad.client.events if isinstance(event, AgentText))
    assert await store.entries("s") == stored
    assert await zed.ask("two") == "Zed heard it"


async def test_when_the_first_is_closed_the_second_goes_on_and_knows_all(store):
    zed, toad = await window(store, "Zed"), await window(store, "Toad")
    await zed.ask("one")
    await zed.session.close()
    assert await toad.ask("two") == "Toad heard it"
    assert toad.seen() == ["one", "two"]
    assert toad.notices() == ["This session went on in another window"]
    await toad.ask("three")
    assert toad.seen() == ["one", "two", "three"]
    assert len(toad.notices()) == 1


async def test_a_window_that_was_stopped_for_long_loses_the_session_and_can_have_it_back(store, clock):
    zed, toad = await window(store, "Zed"), await window(store, "Toad")
    await zed.ask("one")
    clock.now += LEASE_SECONDS + 1
    await toad.ask("two")
    stored = await store.entries("s")
    with pytest.raises((SessionBusy, LeaseLost), match="in use by Toad"):
        await ask(zed.session, "lost")
    assert await store.entries("s") == stored
    await toad.session.close()
    assert await zed.ask("three") == "Zed heard it"
    assert zed.seen() == ["one", "two", "three"]


async def test_a_turn_that_runs_when_the_session_is_taken_writes_nothing_more(store, clock):
    zed = await window(store, "Zed", replies=[{"text": ["begun "], "hang": True}])
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            ended: list[BaseException] = []

            async def run() -> None:
                try:
                    await ask(zed.session, "one")
                except LeaseLost as error:
                    ended.append(error)

            nursery.start_soon(run)
            await zed.client.begun.wait()
            clock.now += LEASE_SECONDS + 1
            toad = await window(store, "Toad")
            assert await toad.ask("two") == "Toad heard it"
            stored = await store.entries("s")
            zed.session.cancel()
    assert await store.entries("s") == stored
    await toad.session.close()
    assert await zed.ask("three") == "Zed heard it"
    assert zed.seen()[-2:] == ["two", "three"]


async def test_nothing_of_a_turn_that_others_went_past_is_written_once_the_session_is_free(store, clock):
    """The tool's result comes when the other window has worked and closed: it stands behind nobody's back."""
    begun, held = trio.Event(), trio.Event()

    async def step(_arguments: object) -> str:
        begun.set()
        await held.wait()
        return "too late"

    tool = FunctionTool("step", "One step.", step, kind="read")
    zed = await window(
        store,
        "Zed",
        replies=[{"calls": [{"name": "step", "arguments": {}}]}, {"text": "never"}],
        tools=[tool],
    )
    toad = await window(store, "Toad")
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                with pytest.raises(LeaseLost):
                    await ask(zed.session, "one")

            nursery.start_soon(run)
            await begun.wait()
            clock.now += LEASE_SECONDS + 1
            assert await toad.ask("two") == "Toad heard it"
            await toad.session.close()
            stored = await store.entries("s")
            held.set()
    await zed.session.close()
    assert await store.entries("s") == stored


async def test_the_cut_that_another_window_made_is_taken_over(store):
    zed, toad = await window(store, "Zed", limit=2), await window(store, "Toad")
    for text in ("one", "two", "three", "four"):
        await zed.ask(text)
    await zed.session.close()
    await toad.ask("five")
    assert "one" not in toad.seen()
    assert toad.seen()[-2:] == ["four", "five"]


async def test_a_load_that_had_to_trim_works_while_another_has_the_session(store):
    zed = await window(store, "Zed")
    for text in ("one", "two", "three"):
        await zed.ask(text)
    stored = await store.entries("s")
    toad = await window(store, "Toad", limit=1)
    assert await store.entries("s") == stored
    assert toad.client.trims() == []
    await zed.session.close()
    await toad.ask("four")
    assert toad.seen()[-1] == "four"
    assert "one" not in toad.seen()
    assert toad.client.trims() != []


async def test_a_window_that_never_asked_keeps_nobody_out(store):
    zed = await window(store, "Zed")
    await zed.talk.save_choice()
    toad = await window(store, "Toad")
    assert await toad.ask("one") == "Toad heard it"
    assert await store.search("s", "one", limit=3)
    await zed.session.close()
    assert await toad.ask("two") == "Toad heard it"


async def test_after_a_load_nothing_is_read_twice_and_the_lease_is_asked_for_once(store, monkeypatch):
    zed = await window(store, "Zed")
    await zed.ask("one")
    await zed.session.close()
    toad = await window(store, "Toad", limit=1)
    takes: list[str] = []
    take = store.leases.take

    async def counted(session_id, holder):
        takes.append(session_id)
        return await take(session_id, holder)

    monkeypatch.setattr(store.leases, "take", counted)
    for text in ("two", "three", "four"):
        await toad.ask(text)
    assert takes == ["s"]
    assert "This session went on in another window" not in toad.notices()


async def test_a_session_that_was_deleted_elsewhere_is_gone(store):
    zed, toad = await window(store, "Zed"), await window(store, "Toad")
    await zed.ask("one")
    await zed.session.close()
    assert await store.delete_session("s")
    with pytest.raises(Exception, match="not in the store"):
        await ask(toad.session, "two")


async def test_a_session_is_deleted_under_its_own_lease(store):
    zed = await window(store, "Zed")
    await zed.ask("one")
    assert await zed.store.delete_session("s")
    assert await store.session("s") is None


async def test_others_see_the_store_as_it_is(store):
    zed = await window(store, "Zed")
    await zed.ask("one")
    leased = zed.store
    await leased.create_session(SessionRecord("t", "/p", TIME, TIME))
    await leased.append("t", await leased.entries("s", limit=1))
    await leased.fork_session(SessionRecord("u", "/p", TIME, TIME), "s", up_to=1)
    assert await leased.entries("t") == await leased.entries("u")
    assert await leased.session("s") == await store.session("s")
    page = await leased.list_sessions(cwd=None, cursor=None, limit=5)
    assert {head.session_id for head in page.sessions} == {"s", "t", "u"}
    assert await leased.delete_session("t")
    assert await leased.purge("2030") == 1
    await leased.aclose()
    assert await store.session("s") is not None


async def test_prompts_that_wait_go_on_under_the_same_lease(store):
    zed = await window(store, "Zed")
    first, second = (zed.session.submit(prompt(text)) for text in ("one", "two"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(zed.session.run, first)
        nursery.start_soon(zed.session.run, second)
    assert zed.seen() == ["one", "two"]
