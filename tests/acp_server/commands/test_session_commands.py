"""`/continue`, `/rewind` and `/expand` in a conversation: what is answered, what the model is sent."""

from pathlib import Path

import pytest
import trio

from acp_server.commands.commands import answer_locally
from acp_server.commands.session_commands import NOTHING_BROKEN
from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, restore
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.values.errors import ProviderError
from runtime.values.profiles import Profile
from runtime.values.prompt import Prompt
from runtime.values.stored import Store
from runtime.values.texts import CONTINUE, CONTINUE_CHECKED, CONTINUING
from tests.support.fakes import EchoTool, RecordingClient, call, make_session, make_setup, script
from tests.support.fakes import ask as spoken

DROPPED = {"text": "half an ans", "drop": True}


async def ask(session: Session, text: str) -> str:
    """A prompt as the wire gives it."""
    blocks: tuple[dict[str, object], ...] = ({"type": "text", "text": text},)
    return await session.run(session.submit(Prompt(CONTINUING.get(text, text), blocks)))


async def reopened(
    store: Store, provider, profile: Profile | None = None, tools=None
) -> tuple[Session, RecordingClient]:
    """The session of the store with the commands, in another process, so to speak."""
    record = await store.session("s")
    assert record is not None
    client = RecordingClient()
    talk = Conversation(
        "s",
        Path("/project"),
        make_setup(provider, profile, [EchoTool()] if tools is None else tools),
        store,
        client,
        state=read_state(record.state),
        title=record.title,
        local=answer_locally,
    )
    await restore(talk)
    return Session(talk), client


async def broken(*replies: object, prompts: tuple[str, ...] = ("one", "two")) -> Store:
    """A session whose last turn ended with an error."""
    session, _, store = await make_session(script(*replies), tools=[EchoTool()])
    for text in prompts[:-1]:
        await spoken(session, text)
    with pytest.raises(ProviderError):
        await spoken(session, prompts[-1])
    return store


async def killed(text: str) -> Store:
    """A session whose process died while a tool ran."""
    session, _, store = await make_session(
        script({"calls": [call("ok", id="c1"), call("wait", id="c2")]}), tools=[EchoTool()]
    )
    copy = MemoryStore()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(spoken, session, text)
        await trio.sleep(1)
        record = await store.session("s")
        assert record is not None
        await copy.create_session(record)
        await copy.append("s", await store.entries("s"))
        nursery.cancel_scope.cancel()
    return copy


async def test_continue_goes_on_with_a_broken_turn_in_the_same_turn_of_the_history():
    store = await broken({"text": "a"}, DROPPED)
    provider = script({"text": "wer"})
    session, client = await reopened(store, provider)
    assert await ask(session, "/continue") == "end_turn"
    rows = provider.requests[0].rows()
    assert [row.content for row in rows if row.role == "user"] == ["one", "two", CONTINUE]
    assert rows[-2].content.startswith("half an ans")
    assert session.conversation.keeper.history.turn_count == 2
    assert client.text() == "wer"


async def test_continue_keeps_the_broken_turn_under_the_smallest_limits():
    store = await broken({"text": "a"}, {"calls": [call("a result", id="c1")]}, DROPPED)
    provider = script({"text": "ok"})
    profile = Profile(max_history_messages=1, keep_tool_context_turns=0)
    session, _ = await reopened(store, provider, profile)
    await ask(session, "/continue")
    assert "a result" in [row.content for row in provider.requests[0].rows() if row.role == "tool"]


@pytest.mark.parametrize("command", sorted(CONTINUING))
async def test_continue_with_nothing_broken_asks_no_model(command: str):
    session, _, store = await make_session(script({"text": "a"}))
    await spoken(session, "one")
    provider = script({"text": "never"})
    again, client = await reopened(store, provider)
    assert await ask(again, command) == "end_turn"
    assert (client.text(), provider.requests) == (NOTHING_BROKEN, [])


async def test_continue_asks_first_when_a_call_may_have_run(autojump_clock):
    """The finished call does not run again; the other one is named, and only `anyway` goes on."""
    store, tool = await killed("go"), EchoTool()
    provider = script({"text": "looked"})
    session, client = await reopened(store, provider, tools=[tool])
    assert await ask(session, "/continue") == "end_turn"
    assert '`echo` {"text":"wait"}' in client.text()
    assert '"ok"' not in client.text()
    assert provider.requests == []
    assert await ask(session, "/continue anyway") == "end_turn"
    rows = provider.requests[0].rows()
    assert rows[-1].content == CONTINUE_CHECKED
    assert next(row.content for row in rows if row.role == "tool") == "ok"
    assert tool.ran == []


async def test_continue_does_not_ask_about_calls_that_only_look(autojump_clock):
    store = await killed("go")
    provider = script({"text": "on"})
    session, _ = await reopened(store, provider, tools=[EchoTool(kind="read")])
    await ask(session, "/continue")
    assert provider.requests[0].rows()[-1].content == CONTINUE


async def test_continue_after_a_restart_is_the_same_history():
    store = await broken({"text": "a"}, DROPPED)
    session, _ = await reopened(store, script({"text": "b"}))
    await ask(session, "/continue")
    live = [turn.rows for turn in session.conversation.keeper.history.turns]
    again, _ = await reopened(store, script({"text": "c"}))
    assert [turn.rows for turn in again.conversation.keeper.history.turns] == live


async def test_expand_says_what_came_back_and_what_did_not():
    session, _, store = await make_session(
        script({"text": "a", "repeat": True}), profile=Profile(max_history_messages=1)
    )
    for number in range(5):
        await spoken(session, f"p{number}")
    small, client = await reopened(store, script({"text": "x"}), Profile(max_history_messages=1))
    await ask(small, "/expand")
    assert client.text() == "4 earlier turns are left out, and none of them fits the present limits."
    large, client = await reopened(store, script({"text": "x"}), Profile(max_history_messages=4))
    await ask(large, "/expand")
    assert client.text() == "The model sees 2 earlier turns again. 2 earlier ones stay left out."
    whole, client = await reopened(store, script({"text": "x"}), Profile(max_history_messages=40))
    await ask(whole, "/expand")
    assert client.text() == "The model sees 2 earlier turns again. Nothing is left out any more."
    await ask(whole, "/expand")
    assert client.text().endswith("Nothing was left out: the model sees the whole conversation.")


async def test_rewind_without_a_number_names_the_turns():
    session, _, store = await make_session(script({"text": "a", "repeat": True}))
    for text in ("first\nline", "x" * 200, "/local"):
        await spoken(session, text)
    again, client = await reopened(store, script({"text": "x"}))
    await ask(again, "/rewind")
    lines = client.text().splitlines()[2:]
    assert lines[0] == "1. first line"
    assert lines[1].startswith("2. xxx")
    assert lines[1].endswith("x…")
    assert lines[2] == "3. /local"


async def test_rewind_makes_a_session_that_ends_there_and_undoes_later_trims():
    profile = Profile(max_history_messages=2)
    session, _, store = await make_session(script({"text": "a", "repeat": True}), profile=profile)
    for number in range(1, 6):
        await spoken(session, f"p{number}")
    before = await store.entries("s")
    again, client = await reopened(store, script({"text": "b", "repeat": True}), profile)
    await ask(again, "/rewind 3")
    made = client.text().split("`")[1]
    record = await store.session(made)
    assert record is not None
    assert record.title == "p1 (to turn 3)"
    state = read_state(record.state)
    assert (state.dropped_turns, bool(state.first_turn_id)) == (1, True)
    copy = await store.entries(made)
    assert [entry.key for entry in copy] == [entry.key for entry in before[: len(copy)]]
    assert (await store.entries("s"))[: len(before)] == before
    assert again.conversation.keeper.history.turn_count == 2


@pytest.mark.parametrize(("number", "answer"), [("9", "There is no turn 9: "), ("0", "There is no turn 0: ")])
async def test_rewind_to_a_turn_that_is_not_there(number: str, answer: str):
    session, _, store = await make_session(script({"text": "a"}))
    await spoken(session, "one")
    again, client = await reopened(store, script({"text": "x"}))
    await ask(again, f"/rewind {number}")
    assert client.text().startswith(answer)
