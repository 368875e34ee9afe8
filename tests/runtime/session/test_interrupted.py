"""Turns that end before their answer: what the person saw stays, calls are final, and the model is told."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, replay, restore
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.values.errors import ProviderError
from runtime.values.events import AgentText, AgentThought, Event, ToolCallChanged, ToolCallStarted
from runtime.values.model import ModelRequest
from runtime.values.stored import Store
from runtime.values.texts import NOTES
from tests.support.fakes import EchoTool, RecordingClient, ask, call, make_session, make_setup, script

SPEAKS: dict[str, object] = {"thought": "hm", "text": ["half ", "an "], "chunk_delay": 0.1, "hang": True}
WORKS: dict[str, object] = {"text": "I try", "calls": [call("ok", id="c1"), call("wait", id="c2")]}
BREAKS: dict[str, object] = {"thought": "hm", "text": "half", "drop": True}


async def reopened(store: Store, provider) -> tuple[Session, RecordingClient]:
    """The session in another process, so to speak, replayed."""
    record = await store.session("s")
    assert record is not None
    client = RecordingClient()
    talk = Conversation(
        "s",
        Path("/project"),
        make_setup(provider, None, [EchoTool()]),
        store,
        client,
        state=read_state(record.state),
    )
    await restore(talk, replayed=True)
    await replay(talk)
    return Session(talk), client


async def copied(store: Store) -> Store:
    """The store as a kill leaves it: what was acknowledged."""
    record, copy = await store.session("s"), MemoryStore()
    assert record is not None
    await copy.create_session(record)
    await copy.append("s", await store.entries("s"))
    return copy


def seen(events: list[Event]) -> dict[str, str]:
    """Every message by id, and every call with its last state."""
    out: dict[str, str] = {}
    for event in events:
        match event:
            case AgentText(ident, text) | AgentThought(ident, text):
                out[ident] = out.get(ident, "") + text
            case ToolCallStarted() | ToolCallChanged():
                out[event.call_id] = event.status
            case _:
                pass
    return out


Stop = Callable[[Session, trio.CancelScope], None]
STOPS: dict[str, Stop] = {
    "cancel": lambda session, _: session.cancel(),
    "end of input": lambda _, scope: scope.cancel(),
}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("reply", [SPEAKS, WORKS], ids=["speaking", "working"])
async def test_a_stopped_turn_is_kept_as_it_was_seen(reply: dict[str, object], stop: str, autojump_clock):
    provider = script({"text": "first"}, reply)
    session, live, store = await make_session(provider, tools=[EchoTool()])
    await ask(session, "one")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, session, "two")
        await trio.sleep(1)
        STOPS[stop](session, nursery.cancel_scope)
    again = script({"text": "ok"})
    session, replayed = await reopened(store, again)
    assert seen(replayed.events) == seen(live.events)
    assert {"pending", "in_progress"}.isdisjoint(seen(replayed.events).values())
    await told_once(session, again.requests, "cancelled")


async def test_a_turn_that_failed_is_kept_as_it_was_seen():
    session, live, store = await make_session(script({"text": "first"}, BREAKS), tools=[EchoTool()])
    await ask(session, "one")
    with pytest.raises(ProviderError):
        await ask(session, "two")
    again = script({"text": "ok"})
    session, replayed = await reopened(store, again)
    assert seen(replayed.events) == seen(live.events)
    await told_once(session, again.requests, "error")


@pytest.mark.parametrize("reply", [SPEAKS, WORKS], ids=["speaking", "working"])
async def test_after_a_kill_all_is_kept_but_for_a_moment(reply: dict[str, object], autojump_clock):
    provider = script({"text": "first"}, reply)
    session, live, store = await make_session(provider, tools=[EchoTool()])
    await ask(session, "one")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, session, "two")
        await trio.sleep(1)
        shown, killed = seen(live.events), await copied(store)
        nursery.cancel_scope.cancel()
    again = script({"text": "ok"})
    session, replayed = await reopened(killed, again)
    kept = seen(replayed.events)
    assert set(kept) == set(shown)
    assert {"pending", "in_progress"}.isdisjoint(kept.values())
    assert {ident: text for ident, text in kept.items() if text != "failed"}.items() <= shown.items()
    await told_once(session, again.requests, "crash")


async def test_nothing_goes_on_by_itself_after_a_load(autojump_clock):
    session, _, store = await make_session(script(SPEAKS))
    with trio.move_on_after(1), suppress(trio.Cancelled):
        await ask(session, "one")
    provider = script({"text": "never"})
    await reopened(store, provider)
    await trio.sleep(10)
    assert provider.requests == []


async def told_once(session: Session, requests: list[ModelRequest], how: str) -> None:
    """The next request tells in one line how the turn before it ended, and has every pair."""
    assert await ask(session, "next") == "end_turn"
    rows = requests[0].rows()
    notes = [row for row in rows if any(note in row.content for note in NOTES.values())]
    assert [row.role for row in notes] == ["assistant"]
    assert notes[0].content.endswith(NOTES[how])
    assert rows[-1].content == "next"
    called = [one.id for row in rows for one in row.tool_calls]
    assert called == [row.tool_call_id for row in rows if row.role == "tool"]
