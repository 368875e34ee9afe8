"""A session set to another model or profile: when it holds, what is told, what is kept, what is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
import trio

from runtime.conversation.load_and_fork import read_state
from runtime.conversation.switch_model import Switching, choice_of
from runtime.history.rows.token_counter import BYTE_CLASSES, HEURISTIC, SightlessCounter
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.session.session import Session
from runtime.setup.session_setup import Alternative, Setup
from runtime.store.memory import MemoryStore
from runtime.values.errors import InvalidParams
from runtime.values.events import HistoryTrimmed, Noticed, UsageChanged
from runtime.values.profiles import PRESETS, Choice, Offer, Profile, Route, Value
from runtime.values.prompt import Prompt
from tests.support.fakes import EchoTool, RecordingClient, ask, call, make_session, make_setup, script


@dataclass(frozen=True)
class Models:
    """A catalog of ready setups by the id of their route; a profile may be chosen beside."""

    setups: Mapping[str, Setup]
    profiles: Mapping[str, Profile]

    def offers(self, choice: Choice) -> tuple[Offer, ...]:
        values = tuple(Value(name, name) for name in self.setups)
        return (Offer("model", "Model", "model", "", choice.model or values[0].id, values),)

    def chosen(self, choice: Choice, offer_id: str, value: str) -> Choice:
        known = self.profiles if offer_id == "profile" else self.setups
        if value not in known:
            raise InvalidParams("no such value")
        return choice._replace(**{offer_id: value})

    def setup(self, choice: Choice) -> Setup:
        setup = self.setups[choice.model or next(iter(self.setups))]
        return replace(setup, profile=self.profiles[choice.profile]) if choice.profile else setup


class Rig(NamedTuple):
    """A session that can be switched between models, and what each of them was asked."""

    session: Session
    client: RecordingClient
    store: MemoryStore
    models: dict[str, ScriptedProvider]

    def choose(self, offer: str, value: str) -> None:
        switching = self.session.conversation.switching
        assert switching is not None
        switching.choose(offer, value)

    def notices(self) -> list[str]:
        return [event.title for event in self.client.events if isinstance(event, Noticed)]


async def rig(**models: Setup) -> Rig:
    """A session whose first model is in use."""
    answering = {name: script({"text": f"{name} says", "repeat": True}) for name in models}
    setups = {}
    for name, setup in models.items():
        own = make_setup(answering[name], setup.profile, [EchoTool()])
        setups[setup.route.id] = replace(setup, provider=own.provider, tools=own.tools)
    first = next(iter(setups.values()))
    session, client, store = await make_session(answering[next(iter(models))], tools=[EchoTool()])
    assert isinstance(store, MemoryStore)
    catalog = Models(setups, PRESETS)
    session.conversation.keeper.use(first)
    session.conversation.switching = Switching(catalog)
    return Rig(session, client, store, answering)


def setup(name: str, window: int | None = 100_000, **more: object) -> Setup:
    base = make_setup(script(echo="x"), Profile(max_context_tokens=1_000_000))
    return replace(base, route=Route(name, "m", window), **more)  # type: ignore[arg-type]


async def test_the_next_turn_asks_the_other_model_and_says_so():
    it = await rig(a=setup("a"), b=setup("b", 8000))
    await ask(it.session, "one")
    it.choose("model", "b/m")
    assert it.notices() == []
    await ask(it.session, "two")
    assert [len(model.requests) for model in it.models.values()] == [1, 1]
    assert [row.content for row in it.models["b"].requests[0].rows()][-2:] == ["a says", "two"]
    assert it.notices() == ["Now using b/m (window 8000)"]
    assert [event.size for event in it.client.events if isinstance(event, UsageChanged)] == [100_000, 8000]


async def test_an_unknown_window_is_said_to_be_unknown():
    it = await rig(a=setup("a"), b=setup("b", None))
    it.choose("model", "b/m")
    await ask(it.session, "one")
    assert it.notices() == ["Now using b/m (window not known)"]


async def test_there_and_back_between_turns_is_no_change():
    it = await rig(a=setup("a"), b=setup("b"))
    it.choose("model", "b/m")
    it.choose("model", "a/m")
    await ask(it.session, "one")
    assert (it.notices(), len(it.models["a"].requests)) == ([], 1)


async def test_what_is_not_on_offer_changes_nothing():
    it = await rig(a=setup("a"), b=setup("b"))
    with pytest.raises(InvalidParams):
        it.choose("model", "c/m")
    await ask(it.session, "one")
    assert it.session.conversation.switching is not None
    assert it.session.conversation.switching.choice == Choice()


async def test_a_running_turn_ends_as_it_began():
    it = await rig(a=setup("a"), b=setup("b"))
    slow = script({"calls": [call("first")]}, {"text": "done"})
    it.session.conversation.keeper.use(
        replace(it.session.conversation.setup, provider=make_setup(slow).provider)
    )
    switched = trio.Event()

    class Switch(EchoTool):
        async def run(self, arguments, context):
            it.choose("model", "b/m")
            switched.set()
            return await super().run(arguments, context)

    tools = {"echo": Switch()}
    it.session.conversation.keeper.use(replace(it.session.conversation.setup, tools=tools))
    await ask(it.session, "one")
    assert switched.is_set()
    assert (len(slow.requests), len(it.models["b"].requests)) == (2, 0)
    # It was stored with the end of that turn.
    record = await it.store.session("s")
    assert record is not None
    assert choice_of(read_state(record.state)) == Choice("b/m")
    await ask(it.session, "two")
    assert len(it.models["b"].requests) == 1


async def test_between_turns_the_choice_is_stored_at_once_and_survives_trims():
    it = await rig(a=setup("a"), b=setup("b"))
    it.choose("model", "b/m")
    it.choose("profile", "tight")
    await it.session.conversation.save_choice()
    for number in range(25):
        await ask(it.session, f"question {number}")
    assert it.client.trims()
    record = await it.store.session("s")
    assert record is not None
    assert choice_of(read_state(record.state)) == Choice("b/m", "", "tight")
    assert read_state(record.state).dropped_turns > 0


async def test_a_smaller_window_trims_with_the_next_call_and_not_before():
    it = await rig(a=setup("a"), b=setup("b", 2000))
    for number in range(6):
        await ask(it.session, f"{number}" * 2000)
    it.choose("model", "b/m")
    assert it.client.trims() == []
    since = len(it.client.events)
    await ask(it.session, "go on")
    (trim,) = it.client.trims()
    assert trim.dropped_turns > 0
    kinds = [type(event) for event in it.client.events[since:]]
    assert kinds.index(Noticed) < kinds.index(HistoryTrimmed)


async def test_a_profile_is_told_with_its_limit():
    it = await rig(a=setup("a"))
    it.choose("profile", "tight")
    await ask(it.session, "one")
    assert it.notices() == ["Now using the profile tight (at most 8000 tokens)"]


async def test_what_was_learned_of_a_model_comes_back_with_it():
    it = await rig(a=setup("a", None), b=setup("b"))
    keeper = it.session.conversation.keeper
    keeper.route, keeper.calibration = replace(keeper.route, learned_window=5000), 1.5
    it.choose("model", "b/m")
    await ask(it.session, "one")
    assert (keeper.route.learned_window, keeper.calibration) == (None, 1.0)
    it.choose("model", "a/m")
    it.session.conversation.begin_turn(Prompt("", ()))
    assert (keeper.route.id, keeper.route.learned_window, keeper.calibration) == ("a/m", 5000, 1.5)


async def test_another_counter_prices_what_is_there_already():
    it = await rig(a=setup("a"), b=setup("b", counter=BYTE_CLASSES))
    await ask(it.session, '{"a": [1, 2, 3], "b": [4, 5, 6]}' * 20)
    before = it.session.conversation.keeper.history
    it.choose("model", "b/m")
    it.session.conversation.begin_turn(Prompt("", ()))
    after = it.session.conversation.keeper.history
    assert after.tokens > before.tokens
    assert after.shared.counter == BYTE_CLASSES


async def test_pictures_for_a_model_that_cannot_see_are_told_once():
    blind = setup("b", images=False, counter=SightlessCounter(HEURISTIC))
    it = await rig(a=setup("a"), b=blind)
    it.choose("model", "b/m")
    picture: dict[str, object] = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    for _ in range(2):
        await it.session.run(it.session.submit(Prompt("look", (picture,))))
    assert it.notices() == ["Now using b/m (window 100000)", "This model cannot see pictures"]


def test_an_alternative_brings_all_that_depends_on_its_model_and_those_behind_it():
    provider = make_setup(script(echo="x")).provider
    others = [
        Alternative(Route("p", name), provider, name, images=False, counter=BYTE_CLASSES) for name in "abc"
    ]
    first = replace(setup("x"), alternatives=tuple(others))
    used = first.using(others[1])
    assert (used.route.id, used.kind, used.images, used.counter) == ("p/b", "b", False, BYTE_CLASSES)
    assert used.alternatives == (others[2],)
    assert used.profile == first.profile
