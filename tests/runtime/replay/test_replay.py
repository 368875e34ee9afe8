"""A stored session is replayed: every request again, byte for byte, trims included; a difference is named."""

from contextlib import aclosing
from dataclasses import replace

import orjson
import pytest

from runtime.conversation.pin_and_expand import expand
from runtime.history.request.digest import request_digest
from runtime.history.rows.notice import Reason
from runtime.providers.openai_chat.request import BodyShape, BodyWriter
from runtime.replay.replay import Difference
from runtime.replay.stored_session import Replayed, replay_session
from runtime.store.memory import MemoryStore
from runtime.values.errors import ProviderError
from runtime.values.model import ModelRequest, Segment
from runtime.values.profiles import Profile
from runtime.values.rows import Row, ToolCall
from runtime.values.stored import Store, StoredEntry
from tests.support.fakes import EchoTool, ask, call, make_session, make_setup, script

TIGHT = Profile(max_context_tokens=2000)
OVERFLOW = {
    "error": {"status": 400, "code": "context_length_exceeded", "message": "5000 tokens > 900 maximum"}
}


async def replayed(store: Store) -> list[Replayed]:
    async with aclosing(replay_session(store, "s")) as made:
        return [one async for one in made]


def sent(request: ModelRequest) -> tuple[object, ...]:
    """All of a request, however it is cut."""
    return request.model, request.rows(), request.tools, request.max_output_tokens


async def changed(store: Store, kind: str, **facts: object) -> Store:
    """A copy of the session in which these facts of the last step of a kind are others."""
    entries, record = await store.entries("s"), await store.session("s")
    assert record is not None
    at = max(index for index, entry in enumerate(entries) if entry.kind == kind)
    step = orjson.loads(entries[at].payload)
    entries[at] = entries[at]._replace(payload=orjson.dumps(step | facts))
    copy = MemoryStore()
    await copy.create_session(record)
    await copy.append("s", entries)
    return copy


async def talked(*replies: object, prompts: int = 3, profile: Profile = TIGHT, window: int | None = None):
    """A session with tools, usage and whatever else the replies bring, and the provider that was asked."""
    provider = script(*replies)
    session, client, store = await make_session(provider, tools=[EchoTool()], profile=profile, window=window)
    for number in range(prompts):
        await ask(session, f"p{number}")
    return store, provider, client


async def test_every_request_is_made_again_as_it_went_out():
    store, provider, client = await talked(
        {"calls": [call("one", id="c1"), call("two", id="c1")], "text": "let me see"},
        {"text": "x", "usage": {"input": 3000, "output": 5}},
        {"text": "y" * 4000},
        {"calls": [call("z" * 3000, id="c1")]},
        {"text": "done"},
    )
    requests = [one.call.request for one in await replayed(store) if one.call is not None]
    assert list(map(sent, requests)) == list(map(sent, provider.requests))
    assert len(requests) == 5
    assert client.trims()


async def test_the_trims_are_made_again_too():
    store, _, client = await talked({"text": "y" * 5000}, {"text": "z" * 5000}, {"text": "ok"})
    assert sum(one.trims for one in await replayed(store)) == len(client.trims()) > 0
    other = await changed(store, "trim", dropped_messages=7)
    with pytest.raises(Difference, match=r"trimmed then: \[\(7, "):
        await replayed(other)


async def test_a_refused_request_and_what_followed_on_it():
    store, provider, client = await talked({"text": "a" * 900}, {"text": "b"}, OVERFLOW, {"text": "ok"})
    requests = [one.call.request for one in await replayed(store) if one.call is not None]
    assert list(map(sent, requests)) == list(map(sent, provider.requests))
    assert [trim.reason for trim in client.trims()] == [Reason.OVERFLOW]


async def test_requests_after_a_command_and_after_an_error():
    provider = script({"text": "a"}, {"text": "half", "drop": True}, {"text": "b"})
    session, _, store = await make_session(provider)
    for text in ("one", "/local", "two", "three"):
        if text == "two":
            with pytest.raises(ProviderError):
                await ask(session, text)
        else:
            await ask(session, text)
    calls = [one.call for one in await replayed(store) if one.call is not None]
    first = [sent(made.request) for made in calls if made.attempt == 1]
    assert first == list(map(sent, provider.requests))


async def test_turns_that_came_back_are_back_in_the_replay_too():
    provider = script({"calls": [call("one", id="c1")]}, {"text": "a", "repeat": True})
    session, client, store = await make_session(
        provider, tools=[EchoTool()], profile=Profile(max_history_messages=1)
    )
    for text in ("p0", "p1", "p2"):
        await ask(session, text)
    keeper = session.conversation.keeper
    keeper.use(make_setup(provider, Profile(max_history_messages=9), [EchoTool()]))
    assert await expand(session.conversation) == 2
    for text in ("p3", "p4"):
        await ask(session, text)
    assert len(client.trims()) == 2
    requests = [one.call.request for one in await replayed(store) if one.call is not None]
    assert list(map(sent, requests)) == list(map(sent, provider.requests))
    assert [row.content for row in requests[-1].rows() if row.role == "user"] == [
        "p0",
        "p1",
        "p2",
        "p3",
        "p4",
    ]


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("prompt", {"text": "something else"}),
        ("setup", {"system": ["You are another test."]}),
        ("setup", {"tools": [["echo", "Say it again.", "{}"]]}),
        ("setup", {"profile": {"keep_tool_context_turns": 0}}),
    ],
)
async def test_a_difference_is_named_with_its_place(kind: str, facts: dict[str, object]):
    store, _, _ = await talked({"calls": [call("one", id="c1")]}, {"text": "a"}, {"text": "b"}, {"text": "c"})
    with pytest.raises(Difference, match=r"turn \w+, provider call \d, attempt 1: "):
        await replayed(await changed(store, kind, **facts))


async def test_a_setup_that_is_not_stored_is_named():
    store, _, _ = await talked({"text": "a"}, prompts=1)
    record, entries = await store.session("s"), await store.entries("s")
    assert record is not None
    copy = MemoryStore()
    await copy.create_session(record)
    await copy.append("s", [entry for entry in entries if entry.kind != "setup"])
    with pytest.raises(Difference, match="is not stored"):
        await replayed(copy)


async def test_what_an_older_version_stored_is_counted_and_not_compared():
    store, _, _ = await talked({"text": "y" * 5000}, {"text": "z" * 5000}, {"text": "ok"})
    record, copy = await store.session("s"), MemoryStore()
    assert record is not None
    await copy.create_session(record)
    await copy.append("s", [without_request(entry) for entry in await store.entries("s")])
    made = await replayed(copy)
    assert [one.call for one in made] == [None] * 3
    assert [one.unrecorded for one in made] == [1, 1, 1]


def without_request(entry: StoredEntry) -> StoredEntry:
    """The entry as it was written before requests were recorded."""
    step = orjson.loads(entry.payload)
    step.pop("request", None)
    return entry._replace(payload=orjson.dumps(step))


async def test_a_setup_is_stored_once_for_all_turns():
    store, _, _ = await talked({"text": "a"}, {"text": "b"}, {"text": "c"})
    assert [entry.kind for entry in await store.entries("s")].count("setup") == 1


# ---------------------------------------------------------------- the digest

ROWS = (
    Row("system", "s"),
    Row("user", "u"),
    Row("assistant", "", tool_calls=(ToolCall("c", "echo", "{}"),)),
    Row("tool", "r", tool_call_id="c"),
)


def test_the_digest_does_not_depend_on_where_a_request_is_cut():
    whole = ModelRequest("m", (Segment(ROWS),))
    cut = ModelRequest("m", tuple(Segment((row,)) for row in ROWS))
    assert request_digest(whole) == request_digest(cut) == request_digest(whole)


@pytest.mark.parametrize(
    "other",
    [
        ModelRequest("n", (Segment(ROWS),)),
        ModelRequest("m", (Segment(ROWS),), max_output_tokens=1),
        ModelRequest("m", (Segment(ROWS[:3]),)),
        ModelRequest("m", (Segment((*ROWS[:3], replace(ROWS[3], tool_call_id="d"))),)),
        ModelRequest("m", (Segment((*ROWS[:3], replace(ROWS[3], content="r2"))),)),
        ModelRequest(
            "m", (Segment((replace(ROWS[0], content=""), replace(ROWS[1], content="su"), *ROWS[2:])),)
        ),
    ],
)
def test_the_digest_changes_with_everything_that_is_sent(other: ModelRequest):
    assert request_digest(other) != request_digest(ModelRequest("m", (Segment(ROWS),)))


async def test_the_body_that_a_provider_would_get_is_the_same_too():
    store, provider, _ = await talked(
        {"calls": [call("one", id="c1")]}, {"text": "a"}, {"text": "b"}, {"text": "c"}
    )
    requests = [one.call.request for one in await replayed(store) if one.call is not None]
    assert [body(request) for request in requests] == [body(request) for request in provider.requests]


def body(request: ModelRequest) -> bytes:
    """The request as chat completions have it."""
    return BodyWriter(BodyShape()).body(request)
