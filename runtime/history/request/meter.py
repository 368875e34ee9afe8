"""What a request made of a history weighs: turn by turn for the limits, piece by piece for people.

The pieces add up. Pure; chooses nothing and knows no limit.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace

from runtime.history.live.history import History
from runtime.history.live.rendering import Face
from runtime.history.live.without_parts import may_go, without
from runtime.history.request.budget import effective_context_budget, trim_target
from runtime.history.rows.boundaries import is_tool_result_carrier
from runtime.history.rows.estimate import estimate_tool_schemas
from runtime.values.events import TokenSource
from runtime.values.profiles import Profile, Route
from runtime.values.rows import ToolSpec


@dataclass(frozen=True, slots=True)
class CallShape:
    """What goes along with the history in one call.

    callable_tools: names the loop can run. calibration: reported / estimated tokens of this route.
    extra_tokens: of text that hooks add. collapse False: older turns are sent whole too.
    """

    tools: tuple[ToolSpec, ...] = ()
    callable_tools: frozenset[str] = frozenset()
    collapse: bool = True
    calibration: float = 1.0
    extra_tokens: int = 0

    def calibrated(self, tokens: int) -> int:
        """Our tokens as this route's provider would count them; never fewer than ours."""
        return int(tokens * self.calibration + 0.5) if self.calibration > 1.0 else tokens

    @property
    def source(self) -> TokenSource:
        """Where calibrated figures come from."""
        return "calibrated" if self.calibration > 1.0 else "estimate"


@dataclass(frozen=True, slots=True)
class Load:
    """A history as one call would send it. All figures are uncalibrated tokens.

    older: how many of the oldest turns are collapsed; keep: how many behind them are whole before the newest.
    fixed: tool schemas and hooks' text. messages: system row, breadcrumb, notes and the faces of all turns.
    """

    history: History
    shape: CallShape
    older: int
    fixed: int
    messages: int
    keep: int = 0

    def request_tokens(self, messages: int | None = None) -> int:
        """The calibrated size of the request, with another figure for its messages if given."""
        own = self.messages if messages is None else messages
        return self.shape.calibrated(own + self.fixed)

    def face(self, index: int) -> Face:
        """How the turn at that place (oldest first) is sent."""
        past = self.history.past
        if index >= len(past):
            return current_face(self.history)
        turn = past[index]
        return turn.collapsed(self.shape.callable_tools) if index < self.older else turn.whole()

    def faces(self) -> tuple[list[Face], list[Face]]:
        """All faces in order: those of the collapsed turns, and those of the whole ones."""
        history = self.history
        collapsed = list(history.collapse.faces) if self.older else []
        whole = [history.past[index].whole() for index in range(self.older, len(history.past))]
        return collapsed, [*whole, current_face(history)]

    def without_oldest(self, count: int) -> "Load":
        """The load of the same history without that many of its oldest turns."""
        if not count:
            return self
        messages = self.messages - sum(self.face(index).tokens for index in range(count))
        if not self.history.crumb_present:
            messages += self.history.beside.crumb.tokens
        history = self.history.without_oldest(count)
        older = max(self.older - count, history.beside.held)
        return replace(self, history=history, older=older, messages=messages)

    def without(self, gone: Sequence[int]) -> "Load":
        """The load of the same history without these turns."""
        if list(gone) == list(range(len(gone))):
            return self.without_oldest(len(gone))
        return weigh(without(self.history, gone), self.shape, self.keep)

    def fewest_to_drop(self, order: Iterable[int], enough: Callable[[int], bool]) -> tuple[int, ...]:
        """The fewest turns to drop, taken in that order.

        enough: takes the tokens of the messages that are left, the breadcrumb among them. At least one
        turn goes, if any may; none goes when that would save nothing at all.
        """
        history = self.history
        messages = self.messages if history.crumb_present else self.messages + history.beside.crumb.tokens
        gone: list[int] = []
        for index in order:
            messages -= self.face(index).tokens
            gone.append(index)
            if enough(messages):
                break
        return tuple(gone) if messages < self.messages else ()


def current_face(history: History) -> Face:
    """How the newest turn is sent: whole, but for results that were shortened earlier in it."""
    shown = history.shown
    if shown is None:
        return Face((), (), 0, 0, 0, (), True)
    rounds = history.marks.rounds_cut
    return shown.shortened(rounds) if rounds else shown.whole()


def weigh(history: History, shape: CallShape, keep_tool_context_turns: int) -> Load:
    """The load of a history for a call. Costs the turns that left or entered the collapsed part."""
    work = copy(history)
    older = 0
    saved = 0
    if shape.collapse:
        older = max(history.turn_count - 1 - max(keep_tool_context_turns, 0), history.beside.held)
        work.collapse = history.collapse.reaching(history.past, shape.callable_tools, older)
        saved = work.collapse.saved
    system = history.system.piece.tokens if history.system.piece is not None else 0
    crumb = (history.beside.crumb.tokens if history.crumb_present else 0) + history.beside.notes_tokens
    fixed = estimate_tool_schemas(shape.tools, history.shared.counter) + shape.extra_tokens
    turns = history.sums.tokens - saved + current_face(history).tokens
    return Load(work, shape, older, fixed, system + crumb + turns, keep_tool_context_turns)


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A kept turn as the next request would have it. Tokens, uncalibrated.

    tools: of its tool rows, a part of `tokens`. saved: by collapsing it. leaves_next: the first that a trim
    takes.
    """

    turn_id: str
    tokens: int
    tools: int
    saved: int
    collapsed: bool
    pinned: bool
    goal: bool
    leaves_next: bool


@dataclass(frozen=True, slots=True)
class Meter:
    """The next request, tokens: system, tools, breadcrumb, notes and the turns make `estimated`.

    used: as the provider would count it. free: what is left of `target`, above which a trim starts.
    """

    system: int
    tools: int
    breadcrumb: int
    notes: int
    turns: tuple[TurnLine, ...]
    estimated: int
    used: int
    target: int
    window: int
    window_known: bool

    @property
    def free(self) -> int:
        """How much more there is room for; 0 when it is full."""
        return max(self.target - self.used, 0)

    @property
    def saved(self) -> int:
        """What collapsing older turns saves."""
        return sum(turn.saved for turn in self.turns)


def meter(history: History, shape: CallShape, profile: Profile, route: Route) -> Meter:
    """The meter of a history for a call of that shape. Costs all kept rows."""
    load = weigh(history, shape, profile.keep_tool_context_turns)
    budget = effective_context_budget(profile, route)
    beside = history.beside
    first = next(iter(may_go(history, profile)), None)
    lines = []
    for index, turn in enumerate(history.turns):
        face, newest = load.face(index), index == history.turn_count - 1
        whole = face.tokens if newest else turn.whole().tokens
        rows = face.rows()
        tools = sum(turn.price(row).tokens for row in rows if row.tool_calls or is_tool_result_carrier(row))
        lines.append(
            TurnLine(
                turn.turn_id,
                face.tokens,
                tools,
                whole - face.tokens,
                collapsed=index < load.older,
                pinned=turn.turn_id in beside.pins,
                goal=turn.turn_id == beside.goal,
                leaves_next=index == first,
            )
        )
    return Meter(
        system=history.system.piece.tokens if history.system.piece is not None else 0,
        tools=load.fixed,
        breadcrumb=beside.crumb.tokens if history.crumb_present else 0,
        notes=beside.notes_tokens,
        turns=tuple(lines),
        estimated=load.messages + load.fixed,
        used=load.request_tokens(),
        target=trim_target(budget, route),
        window=budget.window,
        window_known=budget.window_known,
    )
