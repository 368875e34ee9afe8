"""Cases in which a session is set to another model, by their ids, through a session."""

from dataclasses import replace

from runtime.conversation.switch_model import Switching
from runtime.setup.session_setup import Setup
from runtime.values.events import HistoryTrimmed
from runtime.values.profiles import Choice, Offer, Profile, Route
from tests.runtime.cases.harness import play, prompts, tokens
from tests.runtime.history.case_data import cases

WHOLE = Profile(max_context_tokens=1_000_000, max_history_messages=1000)


class Windows:
    """A catalog of models that differ in their window alone."""

    def __init__(self, setup: Setup, windows: dict[str, int]) -> None:
        self.setups = {
            name: replace(setup, route=Route("p", name, window)) for name, window in windows.items()
        }

    def offers(self, choice: Choice) -> tuple[Offer, ...]:
        return ()

    def chosen(self, choice: Choice, offer_id: str, value: str) -> Choice:
        return choice._replace(model=value)

    def setup(self, choice: Choice) -> Setup:
        return self.setups[choice.model]


async def test_b034_a_smaller_window_is_kept_before_anything_is_sent():
    """What the other model counted plays no part, and one request is enough."""
    windows = cases()["B034"]["input"]["config"]["models"]
    case = await play("B034", window=windows["big"], profile=WHOLE)
    talk = case.session.conversation
    talk.keeper.calibration = 3.0
    talk.switching = Switching(Windows(talk.setup, windows))
    talk.switching.choose("model", "small")
    assert case.client.trims() == []
    assert await case.ask(prompts("B034")[0]) == "end_turn"
    (request,) = case.requests
    assert tokens(request) <= 32_000
    assert tokens(request) > 32_000 - 4096 - 2 * 6100
    (trim,) = case.client.trims()
    assert trim.dropped_turns > 50
    assert [notice.title for notice in case.notices()] == ["Now using p/small (window 32000)"]
    events = [type(event) for event in case.client.events]
    assert events.index(HistoryTrimmed) > events.index(type(case.notices()[0]))


async def test_b034_the_large_window_alone_trims_nothing():
    case = await play("B034", window=1_000_000, profile=WHOLE)
    assert await case.ask(prompts("B034")[0]) == "end_turn"
    assert case.client.trims() == []
