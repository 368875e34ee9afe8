"""Trouble that people had with providers, each under the number of its report."""

import pytest

from tests.process.homes import Home
from tests.process.models import asks
from tests.support.fakes_llm import HELLO, Canned, fake_server, sse, text_event
from tests.support.wire_order import Json

KEY = "sk-test-AAAABBBBCCCCDDDD1111"


async def test_b113_the_key_that_a_server_quotes_reaches_nobody(home: Home) -> None:
    """Not the client, not the log at its loudest, not the transcript; and the store is private."""
    body = b'{"error":{"message":"Incorrect API key provided: %b. Organization org-1."}}' % KEY.encode()
    refusal = Canned((body,), status=401, content_type="application/json")
    home.extra_env |= {"MY_KEY": KEY, "WHOLETURN_LOG": "debug"}
    async with fake_server(refusal, HELLO) as server:
        home.model_at(server.base_url, api_key_env="MY_KEY")
        async with home.talk() as talk:
            turn = await talk.turn("hi")
            assert turn.error is not None
            assert turn.error.code == -32000
            assert "MY_KEY" in turn.text
            assert (await talk.turn("again")).text == "Hello"
            assert KEY not in str(talk.agent.frames)
            assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in home.log.read_text()
    for file in home.data.iterdir():
        assert KEY.encode() not in file.read_bytes()
        assert file.stat().st_mode & 0o077 == 0


async def test_b116_a_stream_that_breaks_off_is_no_finished_answer(home: Home) -> None:
    """Cut, ended without a stop, cut inside a call, ended after thoughts alone."""
    half_call = {"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": '{"pa'}}
    streams: list[Json] = [
        text_event("The fix is to rem"),
        {"choices": [{"index": 0, "delta": {"tool_calls": [half_call]}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
    ]
    answers = [Canned(sse(event, done=False), ending="cut") for event in streams]
    async with fake_server(*answers, *answers[1:], *answers[1:], HELLO) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            turn = await talk.turn("fix?")
            assert turn.error is not None
            assert turn.error.data["kind"] == "stream_dropped"
            assert turn.text.startswith("The fix is to rem")
            for _ in streams[1:]:
                turn = await talk.turn("fix?")
                assert turn.error is not None
                assert turn.calls == []
            assert "yes" not in turn.text


async def test_b118_a_wait_of_days_is_not_waited(home: Home) -> None:
    """The quota is used up; the turn ends at once with the reason."""
    body = b'{"error":{"message":"Monthly quota is used up. It resets in 16 days."}}'
    answer = Canned((body,), status=429, headers=("retry-after: 1382400",), content_type="application/json")
    async with fake_server(answer) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            turn = await talk.turn("hi")
            assert turn.error is not None
            assert turn.error.data["kind"] == "rate_limit"
            assert "1382400 s" in turn.text
        assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 529])
async def test_b119_a_short_wait_in_the_middle_of_a_turn_is_waited(home: Home, status: int) -> None:
    """After a tool round, asked again as told; the turn and its work go on. Cancel ends the wait."""
    busy = Canned((b"{}",), status=status, headers=("retry-after: 0.1",), content_type="application/json")
    later = Canned((b"{}",), status=status, headers=("retry-after: 15",), content_type="application/json")
    async with fake_server(asks(("a1", "list_dir", {})), busy, HELLO, later, HELLO) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            turn = await talk.turn("go")
            assert (turn.stop, turn.text) == ("end_turn", "Hello")
            assert [shown["status"] for shown in turn.calls] == ["completed"]
            asked = await talk.ask("again")
            while len(server.asked) < 4:
                await talk.agent.call("session/list", {})
            await talk.cancel()
            assert (await talk.end_of(asked)).stop == "cancelled"
