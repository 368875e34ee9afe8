"""A model that fails for good, and the next one of the chain: who is asked, until when, and what is said."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.switch_model import Switching
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.session.session import Session
from runtime.setup.session_setup import Alternative, Setup
from runtime.store.memory import MemoryStore
from runtime.values.errors import AuthRequired, ProviderError
from runtime.values.events import HistoryTrimmed, Noticed
from runtime.values.profiles import Choice, Offer, Route
from runtime.values.stored import SessionRecord
from tests.support.fakes import TIME, EchoTool, RecordingClient, ask, call, make_setup, script


class OneSetup:
    """A catalog with nothing to choose."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def offers(self, choice: Choice) -> tuple[Offer, ...]:
        return ()

    def chosen(self, choice: Choice, offer_id: str, value: str) -> Choice:
        return choice

    def setup(self, choice: Choice) -> Setup:
        return self._setup


def alternative(name: str, provider: ScriptedProvider, window: int | None = 32_000) -> Alternative:
    async def made() -> ScriptedProvider:
        await trio.lowlevel.checkpoint()
        return provider

    return Alternative(Route(name, "model", window), made, "scripted")


async def chain(
    first: ScriptedProvider, *others: Alternative, tool: EchoTool | None = None
) -> tuple[Session, RecordingClient]:
    store, client = MemoryStore(), RecordingClient()
    await store.create_session(SessionRecord("s", "/project", TIME, TIME))
    setup = replace(make_setup(first, tools=[tool or EchoTool()]), alternatives=others, jitter=lambda: 0.0)
    switching = Switching(OneSetup(setup))
    return Session(Conversation("s", Path("/project"), setup, store, client, switching=switching)), client


def failing(status: int = 404, times: int = 1) -> list[dict[str, object]]:
    return [{"error": {"status": status, "message": "no"}}] * times


def titles(client: RecordingClient) -> list[str]:
    return [event.title for event in client.events if isinstance(event, Noticed)]


async def test_the_next_model_answers_and_the_first_is_asked_again_in_the_next_turn():
    first, second = script(*failing(), {"text": "back"}), script({"text": "instead"})
    session, client = await chain(first, alternative("second", second))
    assert await ask(session, "one") == "end_turn"
    assert client.text() == "instead"
    assert titles(client) == ["scripted/test-model failed; this turn goes on with second/model"]
    assert await ask(session, "two") == "end_turn"
    assert client.text() == "insteadback"
    assert titles(client)[1].startswith("Now using scripted/test-model")
    assert [row.content for row in first.requests[1].rows()][1:] == ["one", "instead", "two"]


async def test_a_model_is_given_up_only_after_its_retries(autojump_clock):
    first, second = script(*failing(503, 3)), script({"text": "instead"})
    session, client = await chain(first, alternative("second", second))
    await ask(session, "one")
    assert (len(first.requests), len(second.requests)) == (3, 1)
    assert titles(client)[:2] == ["Waiting for the model"] * 2


async def test_the_chain_goes_on_in_its_order_and_ends(autojump_clock):
    models = [script(*failing(404)) for _ in range(3)]
    session, client = await chain(models[0], alternative("b", models[1]), alternative("c", models[2]))
    with pytest.raises(ProviderError):
        await ask(session, "one")
    assert [len(model.requests) for model in models] == [1, 1, 1]
    assert [title.rpartition(" ")[2] for title in titles(client)] == ["b/model", "c/model"]


async def test_the_other_model_stays_for_the_turn_and_tools_do_not_run_twice():
    first = script({"calls": [call("a")]}, *failing(), {"text": "back"})
    second = script({"calls": [call("b")]}, {"text": "done"})
    tool = EchoTool()
    session, client = await chain(first, alternative("second", second), tool=tool)
    await ask(session, "one")
    assert tool.ran == ["a", "b"]
    assert client.text() == "done"
    assert (len(first.requests), len(second.requests)) == (2, 2)


async def test_a_smaller_window_trims_and_says_so():
    texts = [{"text": "x" * 900} for _ in range(6)]
    first, second = script(*texts, *failing()), script({"text": "instead"})
    session, client = await chain(first, alternative("small", second, window=1000))
    for number in range(6):
        await ask(session, f"prompt {number}")
    assert not client.trims()
    await ask(session, "last")
    trims = [event for event in client.events if isinstance(event, HistoryTrimmed)]
    assert len(trims) == 1
    assert trims[0].dropped_turns >= 1
    assert len(second.requests[0].rows()) < len(first.requests[-1].rows())


@pytest.mark.parametrize("status", [400, 401])
async def test_what_another_model_would_not_mend_ends_the_turn(status):
    first, second = script(*failing(status)), script({"text": "no"})
    session, _ = await chain(first, alternative("second", second))
    with pytest.raises((ProviderError, AuthRequired)):
        await ask(session, "one")
    assert second.requests == []


async def test_nothing_is_asked_elsewhere_once_something_was_shown():
    first, second = script({"text": "half", "drop": True}), script({"text": "no"})
    session, client = await chain(first, alternative("second", second))
    with pytest.raises(ProviderError):
        await ask(session, "one")
    assert second.requests == []
    assert client.text().startswith("half")
