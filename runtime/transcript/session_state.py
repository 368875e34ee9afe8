"""What is kept beside a transcript: the cut, the goal, what a turn taught; and how turns are counted.

A turn's number is the place of its prompt among all prompts of the session, from 1: commands that were
answered without the model count too, since the person sees them as well. The cut itself is written with
each trim; what a turn has taught (a window, the limits it ran under) is written with its end.
"""

from dataclasses import dataclass, field, replace

from runtime.history.live.goal import Goal, goal_turn, marker, same_goal
from runtime.history.live.history import History
from runtime.history.request.budget import count_limit, effective_context_budget, trim_target
from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX
from runtime.transcript.restore import turn_rows
from runtime.transcript.turn_record import TurnRecord
from runtime.values.profiles import Profile, Route
from schemas.session_state import GoalRecord, Learned, Limits, SessionState
from schemas.transcript import GoalStep


@dataclass(slots=True)
class Counting:
    """Fed with a session's records in order. number: of the newest prompt.

    kept: the ids of the turns the model has had so far, oldest first; dropped: how many of those are gone.
    cleared: the turn in which the user had all of them go, '' for none. cut: the first turn that is kept and
    those held before it, as last recorded. goal: the one in force. notes: about dropped
    turns.
    """

    number: int = 0
    kept: list[str] = field(default_factory=list)
    dropped: int = 0
    cleared: str = ""
    cut: tuple[str, tuple[str, ...]] = ("", ())
    goal: GoalStep | None = None
    notes: str = ""

    def add(self, turn: TurnRecord, *, with_trims_after: bool = True) -> None:
        """Take in the next record. with_trims_after=False: up to its end, not what was trimmed behind it."""
        if turn.prompt is not None:
            self.number += 1
            if opens_turn(turn, first=self.dropped >= len(self.kept)):
                self.kept.append(turn.turn_id)
        trims = [*turn.trims(), *(turn.trims_after if with_trims_after else ())]
        self.dropped += sum(trim.dropped_turns for trim in trims)
        if any(not trim.kept_turns for trim in trims):
            self.cleared = turn.turn_id
        self.cut = next(
            ((one.first_turn_id, one.held) for one in reversed(trims) if one.first_turn_id), self.cut
        )
        self.notes = next((one.summary for one in reversed(trims) if one.summary), self.notes)
        self.goal = turn.aside.goals[-1] if turn.aside.goals else self.goal
        if turn.expand is not None:
            self.dropped = turn.expand.dropped_turns
            self.cut = turn.expand.first_turn_id, turn.expand.held

    def first_turn_id(self) -> str:
        """The oldest turn that the model still gets; '' when it gets all."""
        if not self.dropped or not self.kept:
            return ""
        if self.cut[0]:
            return self.cut[0]
        if self.dropped >= len(self.kept) and self.cleared:
            return self.cleared
        return self.kept[min(self.dropped, len(self.kept) - 1)]


def opens_turn(turn: TurnRecord, *, first: bool) -> bool:
    """Whether the history has a turn for this prompt: it is for the model and joins no turn before it."""
    if turn.prompt is None or not turn_rows(turn):
        return False
    return first or not turn.prompt.text.startswith(TOOL_RESULTS_PREFIX)


def limits_of(profile: Profile, route: Route) -> Limits:
    """The two limits that decide what is kept: by count, in the profile's unit, and by tokens."""
    tokens = trim_target(effective_context_budget(profile, route), route)
    return Limits(count=count_limit(profile).limit, tokens=tokens)


def learned_of(route: Route, configured: Route) -> Learned | None:
    """What the provider told of a route beyond its settings; None when it told nothing."""
    output = route.max_output_tokens if route.max_output_tokens != configured.max_output_tokens else None
    if route.learned_window is None and output is None:
        return None
    return Learned(
        provider=route.provider,
        model=route.model,
        window=route.learned_window,
        output=output,
        inferred=route.window_inferred,
    )


def with_learned(route: Route, learned: Learned | None) -> Route:
    """The route as it was known before a restart, when it is the same one."""
    if learned is None or (learned.provider, learned.model) != (route.provider, route.model):
        return route
    return replace(
        route,
        learned_window=learned.window or route.learned_window,
        window_inferred=learned.inferred if learned.window else route.window_inferred,
        max_output_tokens=learned.output or route.max_output_tokens,
    )


def state_after(state: SessionState, profile: Profile, route: Route, configured: Route) -> SessionState:
    """The state with what is known at a turn's end. configured: the route as the settings have it."""
    learned = learned_of(route, configured) or _lasting(state.learned, route)
    return state.model_copy(update={"learned": learned, "limits": limits_of(profile, route)})


def _lasting(learned: Learned | None, route: Route) -> Learned | None:
    """What was learned before, unless it is a window of this route that was inferred and then disproved."""
    if learned is None or (learned.provider, learned.model) != (route.provider, route.model):
        return learned
    return None if learned.inferred else learned


def goal_of(state: SessionState) -> Goal | None:
    """The goal in force."""
    found = state.goal
    return None if found is None else Goal(found.text, found.turn_id, found.position, found.supersedes)


def goal_record(step: GoalStep | None) -> GoalRecord | None:
    """A recorded goal as the state has it."""
    return (
        None if step is None else GoalRecord(text=step.text, turn_id=step.turn_id, supersedes=step.supersedes)
    )


def goal_rows(state: SessionState) -> tuple[str, ...]:
    """What the orientation prefix says of it: one line, or nothing."""
    line = marker(goal_of(state))
    return (line,) if line else ()


def keep_what_counts(history: History, state: SessionState) -> None:
    """Tell the history which of its turns retention is to treat apart: the goal's, the pinned ones."""
    turn_id = goal_turn(history, goal_of(state))
    history.beside = replace(history.beside, goal=turn_id, pins=frozenset(state.pins))


def declared(history: History, state: SessionState, text: str, turn_id: str) -> SessionState | None:
    """The state with another goal; None when it is the goal already. turn_id: of the turn that declares it.

    The turn may still be on its way into the history.
    """
    if same_goal(goal_of(state), text):
        return None
    running = history.current is not None and history.current.turn_id == turn_id
    before = history.turn_count - running
    goal = GoalRecord(
        text=text.strip(),
        turn_id=turn_id,
        position=(history.sums.rows if running else history.row_count) + 1,
        supersedes=bool(before or state.dropped_turns),
    )
    return state.model_copy(update={"goal": goal})
