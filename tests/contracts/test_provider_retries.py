"""A turn whose server fails, with every HTTP kind: asked again while nothing was shown, and told of."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trio
from trio.testing import MockClock

from runtime.session.session import Session
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.events import Noticed
from tests.contracts.plans import WIRES, Plan, model_of
from tests.support.fakes import EchoTool, RecordingClient, ask, make_session
from tests.support.fakes_llm import Canned, FakeServer, fake_server

Kind = ProviderErrorKind
TALK = Plan(("Hel", "lo"))
ECHO = Plan(calls=(("c1", "echo", '{"text": "ping"}'),), stop="tool_calls")


@pytest.fixture(params=WIRES)
def kind(request) -> str:
    return str(request.param)


@pytest.fixture
def quick(autojump_clock: MockClock) -> MockClock:
    """Waits are jumped over, but not while bytes are on their way between two sockets."""
    autojump_clock.autojump_threshold = 0.01
    return autojump_clock


def good(kind: str, plan: Plan = TALK) -> Canned:
    return Canned(WIRES[kind].whole(plan))


def refused(status: int, *headers: str, body: bytes = b"{}") -> Canned:
    return Canned((body,), status=status, headers=headers, content_type="application/json")


@dataclass
class Talk:
    """A session with a model of one kind, and the server behind it."""

    session: Session
    client: RecordingClient
    tool: EchoTool
    server: FakeServer

    async def ask(self) -> str:
        """A prompt to its end; its stop reason."""
        return await ask(self.session, "hi")

    async def fails(self) -> ProviderError:
        """A prompt whose turn ends with the provider's error."""
        with pytest.raises(ProviderError) as caught:
            await self.ask()
        return caught.value

    @property
    def count(self) -> int:
        return len(self.server.asked)


@asynccontextmanager
async def talk(kind: str, *answers: Canned) -> AsyncIterator[Talk]:
    async with fake_server(*answers) as server:
        model, tool = model_of(kind, server.base_url), EchoTool()
        session, client, _ = await make_session(model, tools=[tool])
        try:
            with trio.fail_after(3600):
                yield Talk(session, client, tool, server)
        finally:
            await model.aclose()


def waits(client: RecordingClient) -> list[str]:
    """What the person was told while it waited."""
    return [event.title for event in client.events if isinstance(event, Noticed)]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_what_may_pass_is_asked_again_and_the_person_is_told(quick, kind, status):
    async with talk(kind, refused(status), refused(status), good(kind)) as it:
        assert await it.ask() == "end_turn"
        assert (it.client.text(), it.count) == ("Hello", 3)
        assert it.server.asked[0].body == it.server.asked[2].body
        assert waits(it.client) == ["Waiting for the model"] * 2


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_two_more_tries_are_all_and_the_next_prompt_works(quick, kind, status):
    async with talk(kind, *[refused(status)] * 3, good(kind)) as it:
        assert (await it.fails()).status == status
        assert await it.ask() == "end_turn"
        assert it.count == 4
        assert it.client.text().endswith("Hello")


WAITS = [
    (("retry-after: 3",), b"{}", 3.0),
    ((), b'{"error":{"message":"Rate limit reached. Please try again in 4.5s."}}', 4.5),
]


@pytest.mark.parametrize(("headers", "body", "wait"), WAITS)
async def test_a_stated_wait_is_waited_and_told(quick, kind, headers, body, wait):
    async with talk(kind, refused(429, *headers, body=body), good(kind)) as it:
        begin = trio.current_time()
        assert await it.ask() == "end_turn"
        assert trio.current_time() - begin >= wait
    (told,) = [event.description for event in it.client.events if isinstance(event, Noticed)]
    figures = [float(found) for found in re.findall(r"(\d+\.\d) s", told)]
    assert any(wait - 0.1 <= figure <= wait + 0.4 for figure in figures)


HOPELESS = [
    (400, (), b"{}"),
    (401, (), b"{}"),
    (402, (), b"{}"),
    (404, (), b"{}"),
    (429, ("retry-after: 3600",), b"{}"),
    (429, (), b'{"error":{"message":"Daily limit reached. Try again in 7h30m."}}'),
    (429, (), b'{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}'),
    (500, (), b'{"error":{"message":"tools param requires --jinja flag"}}'),
]


@pytest.mark.parametrize(("status", "headers", "body"), HOPELESS)
async def test_what_will_not_pass_ends_the_turn_at_once(quick, kind, status, headers, body):
    async with talk(kind, refused(status, *headers, body=body), good(kind)) as it:
        assert (await it.fails()).status == status
        assert (it.count, waits(it.client)) == (1, [])


@pytest.mark.parametrize("answer", [Canned((), ending="cut"), Canned(()), Canned(raw=b"", ending="cut")])
async def test_an_answer_that_breaks_off_before_anything_was_shown(quick, kind, answer):
    async with talk(kind, answer, good(kind)) as it:
        assert await it.ask() == "end_turn"
        assert (it.client.text(), it.count) == ("Hello", 2)


async def test_an_answer_that_breaks_off_later_is_kept_and_not_begun_again(quick, kind):
    async with talk(kind, Canned(WIRES[kind].parts(TALK), ending="cut"), good(kind)) as it:
        assert (await it.fails()).kind is Kind.STREAM_DROPPED
        assert it.client.text().startswith("Hello")
        assert it.count == 1
        assert await it.ask() == "end_turn"
        assert "Hello" in str(it.server.asked[1].body), "the model sees what it had said"


async def test_half_a_call_is_never_run(quick, kind):
    pieces = WIRES[kind].parts(ECHO)
    half = (*pieces[:-1], pieces[-1][: len(pieces[-1]) // 2])
    async with talk(kind, Canned(half, ending="cut")) as it:
        await it.fails()
        assert it.tool.ran == []


async def test_a_refusal_between_tool_rounds_costs_none_of_them(quick, kind):
    async with talk(kind, good(kind, ECHO), refused(429, "retry-after: 2"), good(kind)) as it:
        assert await it.ask() == "end_turn"
        assert (it.tool.ran, it.client.text(), it.count) == (["ping"], "Hello", 3)


async def test_broken_arguments_are_told_to_the_model(quick, kind):
    broken = Plan(calls=(("c1", "echo", '{"text": "pi'),), stop="tool_calls")
    async with talk(kind, good(kind, broken), good(kind)) as it:
        assert await it.ask() == "end_turn"
        assert (it.tool.ran, it.client.text()) == ([], "Hello")
        assert "invalid_arguments" in str(it.server.asked[1].body), "it sees what it wrote"


SILENT = {
    "waiting": refused(503, "retry-after: 15"),
    "first byte": Canned((), ending="hang"),
    "head": Canned(raw=b"", ending="hang"),
}


@pytest.mark.parametrize("where", SILENT)
async def test_a_cancel_is_heard_at_once(quick, kind, where):
    async with talk(kind, SILENT[where]) as it:
        begin = trio.current_time()
        with trio.move_on_after(1) as scope:
            await it.ask()
        assert scope.cancelled_caught
        assert trio.current_time() - begin < 1.5
        assert it.count == 1


@pytest.mark.parametrize("plan", [TALK, ECHO], ids=["text", "arguments"])
async def test_a_cancel_in_the_middle_of_an_answer(quick, kind, plan):
    half = Canned(WIRES[kind].parts(plan)[:-1], ending="hang")
    async with talk(kind, half, good(kind)) as it:
        begin = trio.current_time()
        with trio.move_on_after(1):
            await it.ask()
        assert trio.current_time() - begin < 1.5
        assert await it.ask() == "end_turn"
        assert it.tool.ran == []
