"""The built-in trimmers on their own: what stays, what a summary stands for, and what they refuse."""

import pytest
import trio

from runtime.history.rows.tool_rounds import (
    Iteration,
    IterationCall,
    IterationResult,
    TrimView,
    iteration_tokens,
)
from runtime.setup.session_setup import Summary
from runtime.trimming.catalog import create, factory, parse_descriptor, trimmer_of
from runtime.trimming.round_trimmers import (
    HEADER,
    FoldedRounds,
    NewestRounds,
    NewestTokens,
    TrimmerSettings,
    first_kept,
)
from runtime.values.errors import ConfigError, ProviderError, ProviderErrorKind
from runtime.values.profiles import LoopContext


def round_of(number: int, output: str = "x" * 400, results: int = 1) -> Iteration:
    """A round with calls `c<number>`, `c<number>b`, …"""
    ids = [f"c{number}{'abc'[at] if at else ''}" for at in range(results)]
    return Iteration(
        tuple(IterationCall(one, f"tool{number}", {"n": number}, f'{{"n":{number}}}') for one in ids),
        tuple(IterationResult(one, output) for one in ids),
    )


def ids(view: TrimView) -> list[str]:
    return [iteration.tool_calls[0].id for iteration in view.history]


class Teller:
    """A model that summarises, with what it was given. An exception is raised."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, instructions: str, text: str) -> Summary:
        await trio.lowlevel.checkpoint()
        self.asked.append(text)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Summary(answer)


# ---------------------------------------------------------------- the newest rounds


@pytest.mark.parametrize(
    ("rounds", "kept"),
    [(1, ["c0"]), (3, ["c0", "c1", "c2"]), (4, ["c1", "c2", "c3"]), (6, ["c3", "c4", "c5"])],
)
async def test_count_keeps_the_newest(rounds: int, kept: list[str]):
    history = [round_of(number) for number in range(rounds)]
    view = await NewestRounds(3).trim(history, "p")
    assert ids(view) == kept
    assert (view.trimmed, view.persist) == (rounds > 3, False)


async def test_a_token_budget_keeps_what_fits_and_always_one():
    history = [round_of(number) for number in range(4)]
    each = iteration_tokens(history[0])
    assert ids(await NewestTokens(2 * each).trim(history, "p")) == ["c2", "c3"]
    assert ids(await NewestTokens(2 * each - 1).trim(history, "p")) == ["c3"]
    assert ids(await NewestTokens(1).trim(history, "p")) == ["c3"]
    assert not (await NewestTokens(4 * each).trim(history, "p")).trimmed


def test_without_slack_each_pass_keeps_as_much_as_fits():
    weights = [3, 9, 1, 4, 4, 2, 7, 1, 1]
    for end in range(1, len(weights) + 1):
        first = first_kept(weights[:end], 10, 0.0)
        assert sum(weights[first:end]) <= 10
        assert first == 0 or sum(weights[first - 1 : end]) > 10


def test_with_slack_a_trim_makes_room_for_the_next_rounds():
    fronts = [first_kept([1] * count, 10, 0.3) for count in range(1, 25)]
    assert len(set(fronts)) == 5
    assert fronts[9:13] == [0, 4, 4, 4]


# ---------------------------------------------------------------- summaries


async def test_three_rounds_become_the_first_with_the_summary_and_the_last():
    teller = Teller("c1 and c2 in short")
    one, two, three = round_of(1), round_of(2), round_of(3)
    view = await FoldedRounds(100, 1, teller).trim((one, two, three), "find the bug")
    assert ids(view) == ["c1", "c3"]
    assert view.history[0].tool_calls == one.tool_calls
    assert view.history[0].tool_results == (IterationResult("c1", f"{HEADER}\nc1 and c2 in short"),)
    assert view.history[1] is three
    assert (view.trimmed, view.persist, view.summary) == (True, True, "c1 and c2 in short")
    assert "find the bug" in teller.asked[0]
    assert one == round_of(1)


async def test_folding_twice_leaves_one_round_that_holds_a_summary():
    trimmer = FoldedRounds(100, 1, teller := Teller("first", "second"))
    view = await trimmer.trim([round_of(n) for n in (1, 2, 3)], "p")
    view = await trimmer.trim([*view.history, round_of(4), round_of(5)], "p")
    assert ids(view) == ["c1", "c5"]
    held = [one for one in view.history if one.tool_results[0].output.startswith(HEADER)]
    assert [one.tool_results[0].output for one in held] == [f"{HEADER}\nsecond"]
    assert f"{HEADER}\nfirst" in teller.asked[1]


async def test_a_summary_alone_is_not_summarised_again():
    trimmer = FoldedRounds(10, 1, Teller("short"))
    view = await trimmer.trim([round_of(1), round_of(2), round_of(3)], "p")
    again = await trimmer.trim(view.history, "p")
    assert (again.trimmed, again.failure) == (False, "")


async def test_several_results_hold_one_summary():
    trimmer = FoldedRounds(10, 1, Teller("short"))
    view = await trimmer.trim([round_of(1, results=3), round_of(2)], "p")
    outputs = [result.output for result in view.history[0].tool_results]
    assert [HEADER in output for output in outputs] == [True, False, False]
    assert [result.id for result in view.history[0].tool_results] == ["c1", "c1b", "c1c"]


async def test_within_the_limit_nobody_is_asked():
    history = [round_of(1), round_of(2)]
    view = await FoldedRounds(sum(map(iteration_tokens, history)), 1, Teller()).trim(history, "p")
    assert not view.trimmed


DOWN = ProviderError("It is down.", kind=ProviderErrorKind.SERVER, retryable=True)


@pytest.mark.parametrize(
    ("answer", "why"),
    [(DOWN, "The summary failed: It is down."), ("", "was empty"), ("y" * 5000, "not smaller")],
)
async def test_a_summary_that_is_none_leaves_all_as_it_was(answer: str | Exception, why: str):
    history = [round_of(1), round_of(2), round_of(3)]
    view = await FoldedRounds(100, 1, Teller(answer)).trim(history, "p")
    assert list(view.history) == history
    assert not view.trimmed
    assert why in view.failure


# ---------------------------------------------------------------- by name


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("count:8", LoopContext("count", keep_last=8)),
        ("token-budget:8000", LoopContext("token-budget", max_tokens=8000)),
        ("summarize:8000/4", LoopContext("summarize", keep_last=4, max_tokens=8000)),
        ("mine", LoopContext("mine")),
        ("pack.mod:make", LoopContext("pack.mod:make")),
    ],
)
def test_a_descriptor_says_it_all(text: str, settings: LoopContext):
    assert parse_descriptor(text) == settings


@pytest.mark.parametrize(
    "text", ["count", "count:", "count:x", "count:0", "summarize:8000", "token-budget:1/2"]
)
def test_a_descriptor_that_cannot_be_read(text: str):
    with pytest.raises(ConfigError, match="it may be count:KEEP_LAST"):
        parse_descriptor(text)


def keeps_two(settings: TrimmerSettings) -> NewestRounds:
    """A factory of one's own."""
    return NewestRounds(2, name=str(settings.options["name"]))


def makes_nothing(settings: TrimmerSettings) -> object:
    return object()


def test_one_of_ones_own_by_its_dotted_name():
    context = LoopContext(f"{__name__}:keeps_two", options=(("name", "mine"),))
    assert trimmer_of(context, 0.0, None).name == "mine"


def test_one_of_ones_own_by_an_entry_point(tmp_path, monkeypatch):
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[wholeturn.context_trimmers]\nmine = {__name__}:keeps_two\n")
    monkeypatch.syspath_prepend(tmp_path)
    made: object = factory("mine")
    assert made is keeps_two


@pytest.mark.parametrize(
    ("strategy", "why"),
    [
        ("nothing", "there is no context strategy 'nothing'; known: count, token-budget, summarize"),
        ("no_such_package:make", "cannot be loaded"),
        (f"{__name__}:no_such_name", "cannot be loaded"),
        (f"{__name__}:makes_nothing", "gave no trimmer"),
    ],
)
def test_a_strategy_that_is_not_there(strategy: str, why: str):
    with pytest.raises(ConfigError, match=why):
        create(strategy, TrimmerSettings())


def test_a_summary_needs_a_model():
    with pytest.raises(ConfigError, match="needs a model"):
        trimmer_of(LoopContext("summarize", 1, 100), 0.0, None)
