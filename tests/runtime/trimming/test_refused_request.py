"""A request that was refused for its size, or perhaps: what is asked instead, how often, what is told."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, restore
from runtime.history.rows.estimate import estimate_history_tokens
from runtime.history.rows.notice import Reason
from runtime.providers.errors.failures import Peer, stated_failure, status_failure
from runtime.replay.stored_session import replay_session
from runtime.session.session import Session
from runtime.values.errors import ContextWindowExceeded, ProviderError, ProviderErrorKind
from runtime.values.events import Noticed
from runtime.values.model import ModelRequest, Part, StopPart, TextPart
from runtime.values.profiles import Profile
from tests.support.fakes import RecordingClient, ask, make_session, make_setup, script

WHOLE = Profile(max_context_tokens=1_000_000)
LESS = "Asking again with less of the conversation"
UNKNOWN = {"error": {"status": 400, "message": "We take 4096 tokens, yours were 5000."}}
PLAIN = {"error": {"status": 400, "message": "Bad Request"}}
OVERFLOW = {"error": {"status": 400, "code": "context_length_exceeded"}}
OK = {"text": "y" * 400}


async def talked(*then: object, turns: int = 12):
    """A session of some turns that were answered, and what it gets afterwards."""
    model = script(*[OK] * turns, *then)
    session, client, store = await make_session(model, profile=WHOLE, window=None)
    for number in range(turns):
        await ask(session, f"p{number} " + "x" * 400)
    return session, client, store, model


def sizes(model) -> list[int]:
    """Tokens of the requests, those of the answered turns left out."""
    return [estimate_history_tokens(request.rows()) for request in model.requests[12:]]


def titles(client: RecordingClient) -> list[str]:
    return [event.title for event in client.events if isinstance(event, Noticed)]


async def replayed(store) -> None:
    """Every request can be made again from what is stored."""
    async with trio.open_nursery():
        assert [one async for one in replay_session(store, "s") if one.call is not None]


# ------------------------------------------------------------ overflows


async def test_an_overflow_that_nothing_helps_makes_four_calls_each_told():
    session, client, store, model = await talked({**OVERFLOW, "repeat": True})
    with pytest.raises(ContextWindowExceeded):
        await ask(session, "more")
    first, second, third, fourth = sizes(model)
    assert second <= first * 2 // 3
    assert third <= second // 2
    assert fourth < third
    assert [row.content for row in model.requests[-1].rows()][2:] == ["more"]
    assert [trim.reason for trim in client.trims()] == [Reason.OVERFLOW] * 3
    assert client.trims()[-1].kept_turns == 1
    await replayed(store)
    with pytest.raises(ContextWindowExceeded):
        await ask(session, "and now?")
    assert len(sizes(model)) == 5, "there is nothing smaller any more"


async def test_what_helps_is_not_shortened_further():
    session, client, store, model = await talked(OVERFLOW, OVERFLOW, OK)
    assert await ask(session, "more") == "end_turn"
    assert len(sizes(model)) == 3
    assert len(client.trims()) == 2
    await replayed(store)


async def test_an_answer_that_is_to_be_shorter_is_told_too():
    text = "max_tokens is too large: 9000. This model supports at most 4096 completion tokens"
    session, client, store, model = await talked({"error": {"status": 400, "message": text}}, OK)
    assert await ask(session, "more") == "end_turn"
    assert [request.max_output_tokens for request in model.requests[12:]] == [None, 4096]
    assert client.trims() == []
    (told,) = [event for event in client.events if isinstance(event, Noticed)]
    assert told.title == "Asking again with less room for the answer"
    assert told.description.endswith("It may now have 4096 tokens.")
    await replayed(store)


# ------------------------------------------------------------ words that no table knows


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_refusal_that_speaks_of_sizes_is_tried_once_with_less(status):
    refused = {"error": {"status": status, "message": "We take 4096 tokens, yours were 5000."}}
    session, client, store, model = await talked(refused, OK)
    assert await ask(session, "more") == "end_turn"
    first, second = sizes(model)
    assert second <= first * 2 // 3
    (trim,) = client.trims()
    assert trim.reason == Reason.OVERFLOW
    assert titles(client) == [LESS]
    await replayed(store)


async def test_when_less_does_not_help_the_error_names_what_a_person_can_do():
    session, client, store, model = await talked({**UNKNOWN, "repeat": True})
    with pytest.raises(ProviderError, match="`/compact` leaves older turns out") as raised:
        await ask(session, "more")
    assert raised.value.status == 400
    assert (len(sizes(model)), len(client.trims())) == (2, 1)
    assert "`/compact`" in client.text()
    with pytest.raises(ProviderError, match="`/compact`"):
        await ask(session, "once more")
    assert len(sizes(model)) == 4, "once in each turn"
    await replayed(store)


async def test_where_there_is_nothing_to_leave_out_it_is_not_asked_again():
    model = script({**UNKNOWN, "repeat": True})
    session, client, _ = await make_session(model, profile=WHOLE, window=None)
    with pytest.raises(ProviderError, match="`/compact`"):
        await ask(session, "x" * 400)
    assert len(model.requests) == 1
    assert client.trims() == []
    assert titles(client) == []


# ------------------------------------------------------------ refusals without words


async def test_a_plain_refusal_that_comes_twice_is_tried_once_with_less():
    session, client, store, model = await talked(PLAIN, PLAIN, OK, PLAIN)
    with pytest.raises(ProviderError) as raised:
        await ask(session, "more")
    assert "/compact" not in str(raised.value)
    assert (len(sizes(model)), client.trims()) == (1, [])
    assert await ask(session, "again") == "end_turn"
    assert len(sizes(model)) == 3
    assert len(client.trims()) == 1
    assert titles(client) == [LESS]
    with pytest.raises(ProviderError) as raised:
        await ask(session, "and then")
    assert "/compact" not in str(raised.value), "it was taken in between"
    await replayed(store)


async def test_turns_do_not_go_with_each_plain_refusal():
    session, client, store, model = await talked({**PLAIN, "repeat": True})
    for hinted, calls in ((False, 1), (True, 3), (True, 4), (True, 5)):
        with pytest.raises(ProviderError) as raised:
            await ask(session, "more")
        assert ("`/compact`" in str(raised.value)) is hinted
        assert len(sizes(model)) == calls
    assert len(client.trims()) == 1
    await replayed(store)


async def test_a_session_that_never_fitted_is_left_alone():
    model = script({**PLAIN, "repeat": True})
    session, client, _ = await make_session(model, profile=WHOLE, window=None)
    for _ in range(4):
        with pytest.raises(ProviderError) as raised:
            await ask(session, "x" * 400)
        assert "/compact" not in str(raised.value)
    assert len(model.requests) == 4
    assert client.trims() == []


async def test_a_session_that_was_loaded_did_fit_before():
    _, _, store, _ = await talked()
    record = await store.session("s")
    model, client = script(PLAIN, PLAIN, OK), RecordingClient()
    setup = make_setup(model, WHOLE, window=None)
    talk = Conversation("s", Path("/project"), setup, store, client, state=read_state(record.state))
    await restore(talk)
    session = Session(talk)
    with pytest.raises(ProviderError):
        await ask(session, "more")
    assert await ask(session, "again") == "end_turn"
    assert len(client.trims()) == 1


# ------------------------------------------------------------ near misses

TABLE = json.loads((Path(__file__).parents[2] / "data" / "overflow_bodies.json").read_text())
NEAR_MISSES = {row["name"]: row for row in TABLE["near_misses"] if not row.get("output")}
PEER = Peer("mine", "h.test", "m", "KEY")


class Refusing:
    """Answers three times, then refuses for good."""

    name = "refusing"

    def __init__(self, error: ProviderError) -> None:
        self.error = error
        self.requests: list[ModelRequest] = []

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Sequence[Part]]]:
        await request.ready()
        self.requests.append(request)
        if len(self.requests) > 3:
            raise self.error

        async def parts() -> AsyncIterator[Sequence[Part]]:
            yield [TextPart("y" * 400), StopPart("end")]

        yield parts()

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("name", NEAR_MISSES)
@pytest.mark.usefixtures("autojump_clock")
async def test_a_near_miss_costs_no_turn_however_often_it_comes(name):
    row = NEAR_MISSES[name]
    if row["status"] is None:
        error = stated_failure(PEER, row["body"])
    else:
        error = status_failure(PEER, row["status"], orjson.dumps(row["body"]))
    session, client, _ = await make_session(Refusing(error), profile=WHOLE, window=None)
    for _ in range(3):
        await ask(session, "x" * 400)
    for _ in range(3):
        if error.kind is ProviderErrorKind.REFUSED:
            assert await ask(session, "more") == "refusal"
            continue
        with pytest.raises(ProviderError) as raised:
            await ask(session, "more")
        assert raised.value is error
    assert client.trims() == []
    assert LESS not in titles(client)
