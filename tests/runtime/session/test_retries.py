"""Requests that failed before anything was shown: which are sent again, when, and who hears of it."""

from functools import partial

import pytest
import trio

from runtime.conversation.retry import MAX_WAIT, retry_delay
from runtime.values.errors import AuthRequired, ProviderError, ProviderErrorKind
from runtime.values.events import Noticed
from tests.support.fakes import ask, make_session, script


def refusal(status: int, **more: object) -> dict[str, object]:
    return {"error": {"status": status, "message": "no", **more}}


def notices(client) -> list[str]:
    return [event.description for event in client.events if isinstance(event, Noticed)]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_what_may_pass_is_tried_again_and_the_person_hears_of_it(status, autojump_clock):
    session, client, _ = await make_session(script(refusal(status), refusal(status), {"text": "here"}))
    assert await ask(session, "hello") == "end_turn"
    assert client.text() == "here"
    first, second = notices(client)
    assert first.endswith("(try 2 of 3).")
    assert second.endswith("(try 3 of 3).")
    assert 0.75 <= trio.current_time() <= 1.5


async def test_two_tries_more_and_no_third(autojump_clock):
    provider = script(*[refusal(503)] * 3, {"text": "too late"})
    session, client, _ = await make_session(provider)
    with pytest.raises(ProviderError):
        await ask(session, "hello")
    assert len(provider.requests) == 3
    assert len(notices(client)) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_will_not_pass_is_not_tried_again(status, autojump_clock):
    provider = script(refusal(status), {"text": "no"})
    session, client, _ = await make_session(provider)
    with pytest.raises((ProviderError, AuthRequired)):
        await ask(session, "hello")
    assert len(provider.requests) == 1
    assert notices(client) == []


async def test_a_stated_wait_is_kept(autojump_clock):
    session, client, _ = await make_session(script(refusal(429, retry_after=7), {"text": "here"}))
    await ask(session, "hello")
    assert 7 <= trio.current_time() <= 7.25
    assert "in 7." in notices(client)[0]


async def test_a_wait_that_is_too_long_ends_the_turn_at_once(autojump_clock):
    session, client, _ = await make_session(script(refusal(429, retry_after=MAX_WAIT + 1), {"text": "no"}))
    with pytest.raises(ProviderError) as caught:
        await ask(session, "hello")
    assert caught.value.retry_after == MAX_WAIT + 1
    assert trio.current_time() == 0
    assert notices(client) == []


async def test_a_cancel_ends_the_wait_at_once(autojump_clock):
    session, client, _ = await make_session(script(refusal(429, retry_after=15), {"text": "after"}))
    async with trio.open_nursery() as nursery:

        async def cancel() -> None:
            await trio.sleep(3)
            session.cancel()

        nursery.start_soon(cancel)
        assert await ask(session, "hello") == "cancelled"
    assert trio.current_time() == 3
    assert await ask(session, "again") == "end_turn"
    assert client.text() == "after"


async def test_nothing_is_tried_again_once_something_was_shown(autojump_clock):
    provider = script({"text": "half", **refusal(503)}, {"text": "no"})
    session, client, _ = await make_session(provider)
    with pytest.raises(ProviderError):
        await ask(session, "hello")
    assert client.text().startswith("half")
    assert len(provider.requests) == 1


def test_half_of_an_unstated_wait_is_jitter():
    error = ProviderError("no", kind=ProviderErrorKind.SERVER, retryable=True, status=500)
    assert [retry_delay(error, 0, partial(float, x)) for x in (0.0, 0.5)] == [0.25, 0.375]
    assert retry_delay(error, 1, lambda: 0.0) == 0.5
    assert retry_delay(error, 2, lambda: 0.0) is None
