"""A model's server that breaks the rules: what it sends never costs the turn's record or the session."""

import json

import pytest

from tests.process.homes import Home
from tests.process.models import answers, asks, rows_of
from tests.support.fakes_llm import Canned, fake_server, sse, text_event
from tests.support.wire_talk import of_kind

STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def nested(levels: int) -> str:
    """Arguments of a call as JSON."""
    return '{"path": "a.txt", "more": ' + '{"in": ' * levels + "1" + "}" * levels + "}"


def call_event(ident: str, name: str, arguments: str) -> bytes:
    """A call in one piece, as bytes: it may hold what no encoder writes."""
    function = {"name": name, "arguments": arguments}
    delta = {"tool_calls": [{"index": 0, "id": ident, "function": function}]}
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    "call",
    [
        call_event("a", "read_file", nested(300)),
        call_event("a", "read_file", nested(1100)),
        call_event("a", "read_\ud800file", "{}"),
        call_event("a\ud800", "read_file", '{"path": "\ud800"}'),
    ],
    ids=["deep", "deeper than can be read", "half a character in the name", "in id and arguments"],
)
async def test_a_call_that_could_not_be_written_down_has_a_result_and_is_stored(
    home: Home, call: bytes
) -> None:
    async with fake_server(Canned((call, *sse(STOP))), answers("fine")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            turn = await talk.turn("go")
            assert (turn.stop, turn.text) == ("end_turn", "fine"), turn.error
            assert [shown["status"] for shown in turn.calls] == ["failed"]
            assert talk.agent.stderr() == ""
        async with home.resumed(talk) as replay:
            assert [shown["status"] for shown in of_kind(replay, "tool_call")] == ["failed"]
            assert (await talk.turn("on")).stop == "end_turn"


async def test_a_call_of_prompt_mode_with_half_a_character(home: Home) -> None:
    written = '<tool_call>{"name": "read_file", "arguments": {"path": "\\ud800"}}</tool_call>'
    async with fake_server(answers(written), answers("fine")) as server:
        home.model_at(server.base_url, tools="prompt")
        async with home.talk() as talk:
            turn = await talk.turn("go")
            assert (turn.stop, turn.text) == ("end_turn", "fine"), turn.error


async def test_a_server_that_hangs_up_behind_its_last_word_has_answered(home: Home) -> None:
    """The body's own end never comes: the words were all there."""
    whole = sse(text_event("all of it"), STOP)
    async with fake_server(Canned(whole, ending="cut"), answers("more")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            turn = await talk.turn("go")
            assert (turn.stop, turn.text) == ("end_turn", "all of it"), turn.error
            assert (await talk.turn("on")).text == "more"


@pytest.mark.parametrize("event", [b"[" * 100_000, b'{"error":' * 50_000, b'{"a":NaN,"b":' + b"[" * 5000])
async def test_an_event_nested_without_end_is_a_malformed_answer(home: Home, event: bytes) -> None:
    async with fake_server(Canned((b"data: " + event + b"\n\n",))) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            turn = await talk.turn("go")
            assert turn.error is not None
            assert turn.error.data["kind"] == "malformed_response"


@pytest.mark.parametrize("tokens", ["1e30", "Infinity", "1000000000000", str(2**64), "-3", "true"])
async def test_a_count_that_cannot_be_is_not_believed(home: Home, tokens: str) -> None:
    """Believed, it would make every later prompt look too large, and no client could read it."""
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":' + tokens.encode() + b"}}\n\n"
    async with fake_server(Canned((usage, *sse(text_event("hi"), STOP)))) as server:
        home.model_at(server.base_url, context_window=16000)
        async with home.talk() as talk:
            for _ in range(2):
                turn = await talk.turn("go")
                assert turn.text == "hi", turn.error
                assert 0 < of_kind(turn.updates, "usage_update")[-1]["used"] < 16000
            assert talk.agent.stderr() == ""


async def test_a_thousand_interim_responses_before_the_answer(home: Home) -> None:
    raw = b"HTTP/1.1 100 Continue\r\n\r\n" * 3000 + b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    whole = b"".join(sse(text_event("at last"), STOP))
    async with fake_server(Canned(raw=raw + whole, ending="cut")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            assert (await talk.turn("go")).text == "at last"


async def test_an_answer_without_end_is_ended_and_kept(home: Home) -> None:
    piece = sse(text_event("z" * 4_000_000), done=False)
    async with fake_server(Canned(piece * 12), answers("more")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            turn = await talk.turn("go")
            assert turn.error is not None
            assert "more than any answer is long" in turn.error.message
            assert turn.text.startswith("z" * 4_000_000)
            assert (await talk.turn("on")).text == "more"


async def test_an_address_that_no_name_server_can_take_is_told(home: Home) -> None:
    home.model_at(f"http://{'a' * 70}.example/v1")
    async with home.talk() as talk:
        turn = await talk.turn("go")
        assert turn.error is not None
        assert "cannot be sent" in turn.error.message


async def test_a_model_that_calls_five_hundred_times_under_one_id(home: Home) -> None:
    calls = [("same", "read_file", {"path": "a.txt"})] * 500
    (home.work / "a.txt").write_text("x")
    async with fake_server(asks(*calls), answers("fine")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            turn = await talk.turn("go")
            assert (turn.stop, turn.text) == ("end_turn", "fine")
            assert all(shown["status"] == "completed" for shown in turn.calls)


def refuses(message: str, status: int = 400) -> Canned:
    """A refusal in a server's own words."""
    body = json.dumps({"error": {"message": message, "type": "BadRequestError", "code": status}})
    return Canned((body.encode(),), status=status, content_type="application/json")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("The input (50000 tokens) is longer than the model's context length (40960 tokens).", ""),
        ("Sorry: 50000 tokens came, and 40960 there are.", "Asking again with less of the conversation"),
    ],
    ids=["known", "unknown"],
)
async def test_a_session_that_is_too_long_goes_on_whatever_the_servers_words(
    home: Home, words: str, told: str
) -> None:
    async with fake_server(*[answers("x" * 4000)] * 3, refuses(words), answers("fine")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            for _ in range(3):
                assert (await talk.turn("y" * 4000)).stop == "end_turn"
            turn = await talk.turn("more")
            assert (turn.stop, turn.text) == ("end_turn", "fine"), turn.error
            (trim,) = of_kind(turn.updates, "history_trimmed")
            assert trim["reason"] == "context window overflow recovery"
            assert told in turn.asides
        assert len(rows_of(server)) < len(rows_of(server, 3))


async def test_a_refusal_that_less_does_not_mend_names_the_way_out(home: Home) -> None:
    async with fake_server(answers("x" * 4000), *[refuses("5000 tokens here, 4096 there")] * 2) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            await talk.turn("y" * 4000)
            turn = await talk.turn("more")
            assert turn.error is not None
            assert "`/compact`" in turn.error.message
            assert len(server.asked) == 3
