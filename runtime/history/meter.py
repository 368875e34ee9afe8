"""What fills a model's context, piece by piece, and what would leave it next. Pure; the pieces add up."""

from dataclasses import dataclass

from runtime.history.boundaries import is_tool_result_carrier
from runtime.history.budget import effective_context_budget, trim_target
from runtime.history.dropping import may_go
from runtime.history.load import CallShape, weigh
from runtime.history.turns import History
from runtime.profiles import Profile, Route


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
