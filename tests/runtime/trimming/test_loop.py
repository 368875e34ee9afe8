"""A running turn under a context trimmer: what is sent, told, recorded, replayed and restored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
import trio
import trio.testing

from runtime.history.request.limits import overfull
from runtime.history.rows.estimate import estimate_history_tokens, estimate_tool_schemas
from runtime.history.rows.notice import Reason
from runtime.history.rows.pairs import pairs_ok
from runtime.history.rows.tool_rounds import Iteration, TrimView, tool_rounds
from runtime.trimming.round_trimmers import HEADER
from runtime.values.events import HistoryTrimmed, Noticed
from runtime.values.profiles import Profile
from runtime.values.rows import Row
from runtime.values.texts import CONTINUE
from schemas.transcript import ANY_STEP, ContextStep, ToolStep
from tests.runtime.trimming.rigs import LookTool, history_rows, looking, replayed, rig, sent, trimmer
from tests.support.fakes import EchoTool, ask, call, prompt, script

LOOSE = Profile(max_tool_iterations=250, max_context_tokens=0)


async def steps(store) -> list[tuple[str, ContextStep]]:
    entries = await store.entries("s", limit=100_000)
    found = [(one.key, ANY_STEP.validate_json(one.payload)) for one in entries if one.kind == "context"]
    return [(key.split(":", 2)[2], step) for key, step in found if isinstance(step, ContextStep)]


@pytest.mark.parametrize("slack", [0.0, 0.2])
@pytest.mark.parametrize("descriptor", ["count:20", "token-budget:5000", "summarize:5000/8"])
async def test_two_hundred_rounds_fit_a_window_of_eight_thousand(descriptor: str, slack: float):
    """Every request is whole and fits; what left is told row by row; the replay needs no summariser."""
    small = script({"text": "nothing found so far", "repeat": True})
    one = await rig(trimmer(descriptor, small, slack), *looking(200))
    assert await ask(one.session, "look around") == "end_turn"
    assert one.client.text() == "done"
    composed = one.session.conversation.keeper.composed
    assert composed is not None
    budget = composed.budget
    for request in one.requests:
        assert pairs_ok(request.rows())
        size = estimate_history_tokens(request.rows()) + estimate_tool_schemas(request.tools)
        assert not overfull(size, budget)
        assert size <= 6500
    assert len(one.requests) == 201
    gone = sum(trim.dropped_messages for trim in one.client.trims())
    assert gone == 2 * (200 - len(tool_rounds(one.requests[-1].rows()[1:])))
    assert {trim.dropped_turns for trim in one.client.trims()} == {0}
    reason = Reason.LOOP_SUMMARIZED if "summarize" in descriptor else Reason.LOOP_TRIMMED
    assert {trim.reason for trim in one.client.trims()} == {reason}
    assert {trim.strategy for trim in one.client.trims()} == {descriptor.split(":")[0]}
    asked = len(small.requests)
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))
    assert len(small.requests) == asked
    assert (asked > 0) is ("summarize" in descriptor)


async def test_the_model_is_told_and_the_pairs_are_the_newest():
    one = await rig(trimmer("count:2"), *looking(4))
    await ask(one.session, "go")
    prompts = [request.rows()[1].content for request in one.requests]
    assert prompts[:3] == ["go"] * 3
    assert prompts[3:] == [
        "go\n[1 earlier tool round of this turn omitted]",
        "go\n[2 earlier tool rounds of this turn omitted]",
    ]
    results = [row.content.split(" r")[0] for row in one.requests[-1].rows() if row.role == "tool"]
    assert results == ["result 3", "result 4"]


async def test_afterwards_the_turn_stands_whole_in_the_history():
    one = await rig(trimmer("count:1"), *looking(3), {"text": "again"}, profile=LOOSE)
    await ask(one.session, "go")
    await ask(one.session, "next")
    rows = one.requests[-1].rows()
    assert sum(row.role == "tool" for row in rows) == 3
    assert "omitted" not in "".join(row.content for row in rows)


async def test_each_pass_is_a_step_of_its_own():
    one = await rig(trimmer("count:2"), *looking(3))
    await ask(one.session, "go")
    found = await steps(one.store)
    assert [key for key, _ in found] == ["iter:1:context", "iter:2:context", "iter:3:context"]
    assert [(step.rounds, step.kept, step.persist) for _, step in found] == [
        (1, ((0, 0),), False),
        (2, ((0, 1),), False),
        (3, ((1, 2),), False),
    ]
    assert [bool(step.trim_id) for _, step in found] == [False, False, True]


async def test_without_the_setting_nothing_is_recorded_and_every_byte_is_the_same():
    plain, roomy = await rig(None, *looking(3)), await rig(trimmer("count:50"), *looking(3))
    for one in (plain, roomy):
        await ask(one.session, "go")
    assert await steps(plain.store) == []
    assert len(await steps(roomy.store)) == 3
    assert list(map(sent, plain.requests)) == list(map(sent, roomy.requests))
    assert plain.client.trims() == roomy.client.trims() == []


async def test_a_turn_without_tools_has_no_pass():
    one = await rig(trimmer("count:1"), {"text": "hello"})
    await ask(one.session, "hi")
    assert await steps(one.store) == []


async def test_with_slack_trims_are_rare():
    often, rare = (
        await rig(trimmer("count:10"), *looking(60)),
        await rig(trimmer("count:10", slack=0.5), *looking(60)),
    )
    for one in (often, rare):
        await ask(one.session, "go")
    assert len(often.client.trims()) == 50
    assert len(rare.client.trims()) == 9
    assert sum(trim.dropped_messages for trim in rare.client.trims()) >= 100


# ---------------------------------------------------------------- summaries


async def test_a_fold_changes_the_history_and_never_the_transcript():
    small = script({"text": "short"})
    one = await rig(trimmer("summarize:300/1", small), *looking(3), profile=LOOSE)
    await ask(one.session, "go")
    (rows,) = history_rows(one)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert rows[2].content == f"{HEADER}\nshort"
    assert rows[4].content.startswith("result 3 ")
    assert rows[0].content == "go"
    stored = [entry async for entry in all_results(one.store)]
    assert [text.split(" r")[0] for text in stored] == ["result 1", "result 2", "result 3"]
    (trim,) = one.client.trims()
    assert (trim.dropped_messages, trim.summary, trim.kept_turns) == (2, "short", 1)
    last = (await steps(one.store))[-1][1]
    assert last.used is not None
    assert (last.summary, last.persist, last.used.route) == ("short", True, "scripted/small")


async def all_results(store):
    for entry in await store.entries("s"):
        if entry.kind == "tool":
            yield ToolStep.model_validate_json(entry.payload).text


@pytest.mark.parametrize("same_id", [False, True])
async def test_a_restored_history_equals_the_one_that_went_on(same_id: bool):
    small = script({"text": "short", "repeat": True})
    one = await rig(trimmer("summarize:400/2", small), *looking(9, same_id=same_id), profile=LOOSE)
    await ask(one.session, "go")
    again = await rig(None, {"text": "x"}, profile=LOOSE, store=one.store)
    assert history_rows(again) == history_rows(one)
    old, new = one.session.conversation.keeper, again.session.conversation.keeper
    assert new.fitted().rows() == old.fitted().rows()
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_a_fold_after_a_crash_is_there_when_the_turn_goes_on():
    """Rounds are counted over the whole turn, the part before the crash too."""
    small = script({"text": "short", "repeat": True})
    one = await rig(trimmer("summarize:400/2", small), *looking(5), profile=LOOSE)
    await ask(one.session, "go")
    entries = [entry for entry in await one.store.entries("s") if entry.kind != "end"]
    store = type(one.store)()
    record = await one.store.session("s")
    assert record is not None
    await store.create_session(record)
    await store.append("s", entries[:-1])
    again = await rig(trimmer("summarize:400/2", small), *looking(4), profile=LOOSE, store=store)
    await ask(again.session, CONTINUE)
    (rows,) = history_rows(again)
    assert sum(HEADER in row.content for row in rows) == 1
    third = await rig(None, {"text": "x"}, profile=LOOSE, store=store)
    assert history_rows(third) == history_rows(again)
    assert list(map(sent, (await replayed(store))[-len(again.requests) :])) == list(map(sent, again.requests))


DOWN = {"error": {"status": 500, "message": "down"}}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (DOWN, "The summary failed"),
        ({"text": ""}, "was empty"),
        ({"text": "y" * 9000}, "not smaller"),
        ({"hang": True, "text": "mm"}, "took longer than 60 s"),
    ],
)
async def test_a_summary_that_fails_leaves_all_as_it_was_and_is_told(answer, why, autojump_clock):
    """And it is not tried again at once: a model that hangs would cost a minute each round."""
    small = script({**answer, "repeat": True})
    failing = await rig(trimmer("summarize:300/1", small), *looking(6), profile=LOOSE)
    plain = await rig(None, *looking(6), profile=LOOSE)
    for one in (failing, plain):
        await ask(one.session, "go")
    assert list(map(sent, failing.requests)) == list(map(sent, plain.requests))
    assert history_rows(failing) == history_rows(plain)
    told = [event for event in failing.client.events if isinstance(event, Noticed)]
    assert [why in notice.description for notice in told] == [True, True]
    assert [key for key, step in await steps(failing.store) if step.failure] == [
        "iter:3:context",
        "iter:5:context",
    ]
    assert failing.client.trims() == []
    assert list(map(sent, await replayed(failing.store))) == list(map(sent, failing.requests))


async def test_a_cancel_is_heard_while_a_summary_hangs():
    small = script({"hang": True, "text": "mm", "repeat": True})
    one = await rig(trimmer("summarize:300/1", small), *looking(6), profile=LOOSE)
    async with trio.open_nursery() as nursery:
        ticket = one.session.submit(prompt("go"))

        async def run() -> None:
            assert await one.session.run(ticket) == "cancelled"

        nursery.start_soon(run)
        while not small.requests:
            await trio.testing.wait_all_tasks_blocked(0.01)
        one.session.cancel()
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


# ---------------------------------------------------------------- one's own trimmers


@dataclass
class Own:
    """A trimmer that does what it is told, with what it was given."""

    makes: Callable[[Sequence[Iteration]], TrimView]
    name: str = "own"
    seen: tuple[Sequence[Iteration], str] | None = None

    async def trim(self, history: Sequence[Iteration], prompt: str) -> TrimView:
        await trio.lowlevel.checkpoint()
        self.seen = history, prompt
        return self.makes(history)


async def test_what_a_trimmer_sees():
    own = Own(lambda history: TrimView(history, trimmed=False))
    one = await rig(
        own,
        {"calls": [call("a", id="x"), call("b", id="y")], "text": "see"},
        {"text": "ok"},
        tools=[EchoTool()],
    )
    await ask(one.session, "the prompt")
    assert own.seen is not None
    (only,), asked = own.seen
    assert asked == "the prompt"
    assert [(one.id, one.name, one.input) for one in only.tool_calls] == [
        ("x", "echo", {"text": "a"}),
        ("y", "echo", {"text": "b"}),
    ]
    assert [(one.id, one.output) for one in only.tool_results] == [("x", "a"), ("y", "b")]
    assert only.text == "see"
    assert only.tokens == estimate_history_tokens(one.requests[1].rows()[2:])


async def test_a_trimmer_may_take_out_the_middle_and_bring_it_back():
    def makes(history):
        odd = len(history) % 2
        return TrimView(
            (history[0], *history[-1:]) if odd and len(history) > 1 else history, trimmed=bool(odd)
        )

    one = await rig(Own(makes), *looking(5))
    await ask(one.session, "go")
    assert [len(tool_rounds(request.rows()[1:])) for request in one.requests] == [0, 1, 2, 2, 4, 2]
    assert [trim.dropped_messages for trim in one.client.trims()] == [2, 6]
    assert [trim.strategy for trim in one.client.trims()] == ["own", "own"]
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


def lost_newest(history):
    return TrimView(history[:-1], trimmed=True)


def turned_round(history):
    return TrimView(history[::-1], trimmed=True)


def without_a_result(history):
    return TrimView([replace(history[-1], tool_results=())], trimmed=True)


def breaks(history):
    raise RuntimeError("a secret detail")


@pytest.mark.parametrize("makes", [lost_newest, turned_round, without_a_result, breaks])
async def test_a_trimmer_that_goes_wrong_changes_nothing_and_is_told(makes):
    wrong, plain = await rig(Own(makes), *looking(3)), await rig(None, *looking(3))
    for one in (wrong, plain):
        await ask(one.session, "go")
    assert [sent(request) for request in wrong.requests] == [sent(request) for request in plain.requests]
    told = [event for event in wrong.client.events if isinstance(event, Noticed)]
    assert told
    assert "secret" not in str(told)


async def test_calls_that_stand_in_the_text_are_rounds_too():
    written = {"text": '<tool_call>{"name": "look", "arguments": {}}</tool_call>', "repeat": 6}
    one = await rig(trimmer("count:2"), written, {"text": "done"}, prompt_tools=True)
    await ask(one.session, "go")
    assert next(row.content for row in one.requests[-1].rows() if row.role == "user") == (
        "go\n[4 earlier tool rounds of this turn omitted]"
    )
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_results_that_were_shortened_stay_so_when_rounds_leave():
    profile = Profile(max_tool_iterations=50, running_turn_overflow="shorten")
    one = await rig(trimmer("count:9"), *looking(30), profile=profile, tools=[LookTool(3000)], window=4000)
    await ask(one.session, "go")
    reasons = {event.reason for event in one.client.events if isinstance(event, HistoryTrimmed)}
    assert reasons == {Reason.SHORTENED, Reason.LOOP_TRIMMED}
    assert list(map(sent, await replayed(one.store))) == list(map(sent, one.requests))


async def test_a_second_pass_for_the_same_call_has_a_key_of_its_own(monkeypatch):
    """Another model takes over: the history is bounded for it anew."""
    one = await rig(trimmer("count:1"), *looking(2))
    talk = one.session.conversation
    other = script({"text": "from the other"})
    failing = {"error": {"status": 401, "message": "no"}}
    first = script({"calls": [{"name": "look", "arguments": {}}], "repeat": 2}, failing)
    told: list[object] = []

    async def use_other(error):
        if told:
            return False
        told.append(error)
        talk.keeper.use(replace(talk.setup, provider=provider_of(other)))
        return True

    talk.keeper.use(replace(talk.setup, provider=provider_of(first)))
    monkeypatch.setattr(talk, "fall_back", use_other)
    await ask(one.session, "go")
    assert [key for key, _ in await steps(one.store)] == [
        "iter:1:context",
        "iter:2:context",
        "iter:2:context:2",
    ]
    assert [step.attempt for _, step in await steps(one.store)] == [0, 0, 1]
    made = await replayed(one.store)
    assert list(map(sent, made)) == list(map(sent, [*first.requests, *other.requests]))


def provider_of(model):
    async def get():
        await trio.lowlevel.checkpoint()
        return model

    return get


def test_rows_know_their_rounds():
    rows = [Row("user", "p"), Row("assistant", "a"), Row("user", "[Tool results]\nx", origin="runtime")]
    assert [(one.start, one.end) for one in tool_rounds(rows)] == [(1, 3)]
    assert tool_rounds([Row("user", "p"), Row("assistant", "a"), Row("user", "[Tool results]\nx")]) == []


async def test_a_summary_is_read_although_results_were_shortened_before_it():
    """The first passes fail, so results are shortened; the fold that works then writes a text of its own."""
    summariser = script(
        *[{"error": {"status": 500, "message": "down"}}] * 3,
        {"text": "THE SUMMARY" + " and more" * 16, "repeat": True},
    )
    profile = Profile(max_tool_iterations=50, running_turn_overflow="shorten")
    tools = [LookTool(size=2000)]
    made = await rig(
        trimmer("summarize:1500/1", summariser), *looking(30), profile=profile, window=4000, tools=tools
    )
    await ask(made.session, "go")
    results = [[row.content for row in one.rows() if row.role == "tool"] for one in made.requests]
    assert sum("THE SUMMARY" in texts[0] for texts in results if texts) > 3
    assert not any("195 bytes" in texts[0] for texts in results if texts), "the summary itself was shortened"
