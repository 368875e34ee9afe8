"""Generators of histories: whole and broken turns, as recorded rows and as live histories.

Each draws one block of bytes and spends it choice by choice. A history of hundreds of single draws
costs hypothesis twenty times what the tested rules cost; a block costs one draw, and still shrinks, for
a zero byte always chooses the plainest thing.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st

from runtime.history.live.history import History, restore_history
from runtime.values.profiles import HistoryUnit, Profile, Route, RunningTurnOverflow
from runtime.values.rows import Attachment, Image, Row, ToolCall, ToolSpec

EXAMPLES = settings()
"""As many as the loaded profile says: `HYPOTHESIS_PROFILE` is default, ci or thorough."""

TOOLS = (
    ToolSpec("shell", "run a command", '{"type":"object"}'),
    ToolSpec("read_file", "read a file", '{"type":"object","properties":{"path":{"type":"string"}}}'),
)
T = TypeVar("T")

NAMES = ("shell", "read_file", "retired_tool")

SPOKEN = (
    "ok",
    "run it",
    "历史管理" * 20,
    "🔥🎉",
    "x" * 900,
    "[IMAGE:/a.png] look",
    "[earlier turns omitted to fit the context window]",
    '{"attachments":[]}',
)
LETTERS = "a \n\t0é本🔥\u0301\u202e\x00[]{}\"\\<>:/|'"
ATTACHMENTS: tuple[tuple[Attachment, ...], ...] = (
    *[()] * 3,
    (Attachment("image", "/shot.png"),),
    (Attachment("image", "?"),),
)
PICTURES: tuple[tuple[Image, ...], ...] = ((), (), (Image("image/png", "QUJD" * 50),))
UNITS: tuple[HistoryUnit, ...] = ("turns", "messages")
OVERFLOWS: tuple[RunningTurnOverflow, ...] = ("fail", "shorten")


class Choices:
    """A block of bytes, spent a byte a choice; once it is empty every choice is the first."""

    def __init__(self, block: bytes) -> None:
        self._left = iter(block)

    def below(self, bound: int) -> int:
        """A number from 0 up to, not including, `bound`, which is 256 at most."""
        return next(self._left, 0) % bound

    def of(self, options: Sequence[T]) -> T:
        """One of the options, the first for a zero."""
        return options[self.below(len(options))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in some order, unchanged for zeros."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]


def spent(size: int, build: Callable[..., T], **fixed: Any) -> st.SearchStrategy[T]:
    """What `build` makes of a block of `size` bytes."""
    return st.binary(min_size=size, max_size=size).map(lambda block: build(Choices(block), **fixed))


def spoken(choices: Choices) -> str:
    """A text with something to see in it."""
    known = choices.below(2 * len(SPOKEN))
    if known < len(SPOKEN):
        return SPOKEN[known]
    return "a" + "".join(choices.of(LETTERS) for _ in range(choices.below(12)))


def text(choices: Choices) -> str:
    """Any text, the empty one too."""
    return spoken(choices) if choices.below(4) else ""


def tool_round(choices: Choices, *, broken: bool) -> list[Row]:
    """One tool round: a call row and its results, whole unless `broken`."""
    count = 1 + choices.below(3)
    known = ["c1", "c2", "c3", "c1_2", "x"]
    ids = [choices.of(known) for _ in range(count)] if broken else choices.shuffled(known)[:count]
    calls = tuple(ToolCall(one, choices.of(NAMES), choices.of(("{}", '{"a":1}'))) for one in ids)
    rows = [Row("assistant", choices.of(("", "let me look")), calls)]
    results = [
        Row("tool", text(choices), tool_call_id=one, attachments=choices.of(ATTACHMENTS)) for one in ids
    ]
    if broken:
        results = choices.shuffled(results)[: count - choices.below(count + 1)]
        if choices.below(2):
            results.append(Row("tool", text(choices), tool_call_id=choices.of((None, "zz", "c1"))))
    return rows + results


def written_round(_choices: Choices, **_: object) -> list[Row]:
    """One tool round of a model that writes its calls into the text."""
    return [
        Row("assistant", '<tool_call>{"name":"shell","arguments":{"n":1}}</tool_call>'),
        Row("user", '[Tool results]\n<tool_result name="shell">out</tool_result>', origin="runtime"),
    ]


def feedback(_choices: Choices, **_: object) -> list[Row]:
    """A call that could not be read, and what the model was told."""
    return [Row("assistant", "garbled"), Row("user", "[Tool call parse error]\nagain", origin="runtime")]


ROUNDS: tuple[Callable[..., list[Row]], ...] = (tool_round, written_round, feedback)


def turn_rows(choices: Choices, *, broken: bool) -> list[Row]:
    """A turn: its prompt, some rounds, mostly a closing reply."""
    rows = [Row("user", spoken(choices), images=choices.of(PICTURES), origin="user")]
    for _ in range(choices.below(4)):
        rows += choices.of(ROUNDS)(choices, broken=broken)
    if choices.below(5):
        rows.append(Row("assistant", spoken(choices)))
    return rows


def system_texts(choices: Choices) -> list[str]:
    """Up to two system texts."""
    return [choices.of(("be brief", "", "s" * 60)) for _ in range(choices.below(3))]


def _history(choices: Choices, *, broken: bool) -> History:
    running, crumb_present = bool(choices.below(2)), bool(choices.below(2))
    system, late_system = system_texts(choices), system_texts(choices)
    turns = [turn_rows(choices, broken=broken) for _ in range(1 + choices.below(8))]
    history = restore_history(
        ((f"t{index}", rows) for index, rows in enumerate(turns)),
        system=system,
        late_system=late_system,
        crumb_present=crumb_present,
    )
    history.running = running
    return history


def _flat_rows(choices: Choices) -> list[Row]:
    rows = [Row("system", one) for one in system_texts(choices)]
    rows += [Row("assistant", "hello")] * choices.below(2)
    for _ in range(choices.below(9)):
        at, late = choices.below(8), choices.below(4) == 3
        turn = turn_rows(choices, broken=True)
        rows += [*turn[:at], *([Row("system", "late")] if late else []), *turn[at:]]
    return rows


def _profile(choices: Choices) -> Profile:
    return Profile(
        max_history_messages=choices.of((None, 0, 1, 2, 5)),
        history_unit=choices.of(UNITS),
        max_context_tokens=choices.of((None, 0, 1, 40, 300, 2000)),
        keep_tool_context_turns=choices.below(4),
        running_turn_overflow=choices.of(OVERFLOWS),
        trim_slack_ratio=choices.of((0.0, 0.2, 0.9)),
    )


def _route(choices: Choices) -> Route:
    return Route("p", "m", choices.of((None, 600, 3000, 100_000)), choices.of((None, 100)))


def histories(*, broken: bool = False) -> st.SearchStrategy[History]:
    """A live history of such turns, the newest one perhaps still running."""
    return spent(320, _history, broken=broken)


def flat_rows() -> st.SearchStrategy[list[Row]]:
    """Plain rows of an embedder: a preamble, late system rows, broken pairs, all in one list."""
    return spent(320, _flat_rows)


profiles = spent(6, _profile)
routes = spent(2, _route)
