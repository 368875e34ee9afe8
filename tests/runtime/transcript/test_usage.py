"""What a session used and cost: sums over stored replies, and the figure on the client's meter."""

import pytest

from runtime.store.memory import MemoryStore
from runtime.transcript.usage import Usage, stored_totals
from runtime.values.events import UsageChanged
from runtime.values.model import Cost, Price
from runtime.values.profiles import Profile, Route
from runtime.values.stored import SessionRecord, StoredEntry
from schemas.transcript import ReplyStep, RequestRecord, RouteRecord, SetupStep, Step, UsageRecord
from tests.support.fakes import TIME, EchoTool, ask, call, make_session, script

DEAR, CHEAP = Price(10, 100, cached_read=1, cached_write=20), Price(1, 2)
PRICES = {"p/dear": DEAR, "p/cheap": CHEAP}


def reply(tokens: int, *, setup: str = "", **more: int) -> ReplyStep:
    used = UsageRecord(input_tokens=tokens, output_tokens=10, **more)
    request = RequestRecord(setup=setup, digest="", rows=1) if setup else None
    return ReplyStep(iteration=0, message_id="m", text="t", usage=used, request=request)


def setup_step(digest: str, model: str) -> SetupStep:
    return SetupStep(digest=digest, route=RouteRecord(provider="p", model=model), profile={})


async def stored(*steps: tuple[str, Step]) -> MemoryStore:
    """A store with these steps, each in its turn."""
    store = MemoryStore()
    await store.create_session(SessionRecord("s", "/", TIME, TIME))
    for number, (turn, step) in enumerate(steps):
        kind = str(getattr(step, "kind", ""))
        entry = StoredEntry(turn, f"{turn}:{number}", kind, step.model_dump_json().encode())
        await store.append("s", [entry])
    return store


async def test_sums_of_the_session_and_of_its_newest_turn():
    store = await stored(
        ("1", reply(100, cached_tokens=60, cache_write_tokens=30)), ("2", reply(200)), ("2", reply(300))
    )
    totals = await stored_totals(store, "s", PRICES, "p/cheap")
    assert (totals.session.calls, totals.session.input, totals.session.output) == (3, 600, 30)
    assert (totals.session.cached_read, totals.session.cached_write) == (60, 30)
    assert (totals.newest.calls, totals.newest.input) == (2, 500)
    assert totals.session.cost() == Cost((600 * 1 + 30 * 2) / 1e6, "USD")


async def test_each_reply_costs_what_the_model_costs_that_gave_it():
    store = await stored(
        ("1", setup_step("a", "dear")),
        ("1", reply(1000, setup="a", cached_tokens=600, cache_write_tokens=100)),
        ("2", setup_step("b", "cheap")),
        ("2", reply(500, setup="b")),
        ("3", reply(7, setup="a")),
    )
    totals = await stored_totals(store, "s", PRICES, "p/other")
    dear = (300 * 10 + 600 * 1 + 100 * 20 + 10 * 100) + (7 * 10 + 10 * 100)
    assert {route: usage.calls for route, usage in totals.models.items()} == {"p/dear": 2, "p/cheap": 1}
    assert totals.models["p/dear"].costs["USD"] == pytest.approx(dear / 1e6)
    assert totals.session.costs["USD"] == pytest.approx((dear + 500 + 20) / 1e6)
    assert totals.session.unpriced == 0


async def test_a_reply_without_figures_is_a_call_and_a_model_without_a_price_is_told():
    bare = ReplyStep(iteration=0, message_id="m", text="t")
    totals = await stored_totals(await stored(("1", bare)), "s", {}, "x")
    assert totals.session == Usage(calls=1, unpriced=1)
    assert totals.session.cost() is None


async def test_money_of_two_kinds_is_never_added():
    usage = Usage().plus(reply(10).usage, DEAR).plus(reply(10).usage, Price(1, currency="EUR"))
    assert set(usage.costs) == {"USD", "EUR"}
    assert usage.cost() is None


async def test_entries_that_cannot_be_read_are_passed_over():
    store = await stored(("1", reply(5)))
    await store.append("s", [StoredEntry("2", "k", "reply", b"{")])
    assert (await stored_totals(store, "s", {}, "x")).session.calls == 1


async def test_the_meter_shows_the_cost_of_all_calls_so_far():
    usage = {"input": 1000, "output": 100, "cached": 500}
    model = script({"calls": [call("x")], "usage": usage}, {"text": "a", "usage": usage, "repeat": True})
    session, client, store = await make_session(model, tools=[EchoTool()], profile=Profile())
    keeper = session.conversation.keeper
    assert keeper.route == Route("scripted", "test-model", 32000)
    keeper.setup.prices["scripted/test-model"] = Price(2, 10)  # type: ignore[index]
    await ask(session, "one")
    await ask(session, "two")
    costs = [event.cost.amount for event in client.events if isinstance(event, UsageChanged) and event.cost]
    once = (1000 * 2 + 100 * 10) / 1e6
    assert costs == pytest.approx([once, 2 * once, 3 * once])
    totals = await stored_totals(store, "s", keeper.setup.prices, keeper.route.id)
    assert totals.session == keeper.spent


async def test_without_prices_the_meter_has_no_cost():
    session, client, _ = await make_session(script(echo="ok"))
    await ask(session, "one")
    assert [event.cost for event in client.events if isinstance(event, UsageChanged)] == [None]
