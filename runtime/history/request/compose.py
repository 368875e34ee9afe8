"""One provider call's messages from a live history, in one pure step: limits, what each turn shows, checks.

Also the same request with notes about dropped turns, and what a provider's own count says about our estimate.
Keeps nothing and sends nothing.
"""

from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import dataclass, replace

from runtime.history.live.history import History
from runtime.history.live.preamble import notes_piece
from runtime.history.live.rendering import Face
from runtime.history.request.budget import ContextBudget, effective_context_budget, output_limit, trim_target
from runtime.history.request.limits import (
    above_target,
    call_warnings,
    cut_to_limits,
    require_capacity,
    token_limit,
)
from runtime.history.request.meter import CallShape, Load
from runtime.history.request.running_turn import shorten_running_turn
from runtime.history.rows.estimate import IMAGE_TOKENS
from runtime.history.rows.notice import TrimNotice, merged, with_note
from runtime.history.rows.pairs import repair
from runtime.values.events import Noticed, TokenSource
from runtime.values.model import Segment
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row, ToolSpec


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where the recorded rows of the kept turns are: recorded = sent + collapsed + swept + omitted.

    System rows, the breadcrumb and summary rows are in none of them; `shortened` rows are sent too.
    omitted: left out of the running turn by its loop.
    """

    recorded: int
    sent: int
    collapsed: int
    swept: int
    shortened: int
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Composed:
    """A request's parts and the history to go on with.

    trims: none, or the one notice that must reach the client first. warnings: each once a turn.
    estimated_tokens: the whole request, calibrated; raw_tokens: uncalibrated; message_tokens: raw,
    without tool schemas and hooks' text. healed: the pair check failed, which is a bug to be logged.
    """

    segments: tuple[Segment, ...]
    max_output_tokens: int | None
    history: History
    trims: tuple[TrimNotice, ...]
    warnings: tuple[Noticed, ...]
    estimated_tokens: int
    raw_tokens: int
    message_tokens: int
    source: TokenSource
    budget: ContextBudget
    target: int
    collapsed_turns: int
    images: int
    shape: CallShape
    healed: bool = False

    def rows(self) -> list[Row]:
        """All rows of the request, in order."""
        return [row for segment in self.segments for row in segment.rows]

    def ledger(self) -> Ledger:
        """The sums that must add up. Costs all kept rows."""
        return _ledger(self)


def compose(
    history: History,
    profile: Profile,
    route: Route,
    tools: Iterable[ToolSpec] = (),
    *,
    collapse: bool = True,
    callable_tools: Collection[str] | None = None,
    calibration: float = 1.0,
    extra_tokens: int = 0,
    check_capacity: bool = True,
) -> Composed:
    """The messages of the next provider call. Leaves `history` as it is; go on with the returned one.

    callable_tools: names the loop can run, those of `tools` unless given. Raises ContextWindowExceeded
    when the request cannot fit the model's known window.
    """
    specs = tuple(tools)
    names = (tool.name for tool in specs) if callable_tools is None else callable_tools
    shape = CallShape(specs, frozenset(names), collapse, calibration, extra_tokens)
    return prepare(history, profile, route, shape, check_capacity=check_capacity)


def prepare(
    history: History,
    profile: Profile,
    route: Route,
    shape: CallShape,
    *,
    ceiling: int | None = None,
    check_capacity: bool = True,
) -> Composed:
    """`compose` for a call of known shape. ceiling: cap on the messages, raw tokens, after a refusal."""
    budget = effective_context_budget(profile, route)
    target = trim_target(budget, route)
    cut = cut_to_limits(history, shape, profile, budget, token_limit(target, profile, ceiling))
    short = shorten_running_turn(cut.load, profile, route, budget, ceiling)
    notice, load = merged(cut.notice, short.notice), short.load
    estimated = load.request_tokens()
    if check_capacity:
        require_capacity(estimated, budget, profile, pinned=bool(load.history.beside.pins))
    above = above_target(load, budget, target)
    trimmed, noted = cut.notice is not None, notice is not None
    warnings, marks = call_warnings(load, profile, budget, trimmed=trimmed, above=above, noted=noted)
    load.history.marks = marks
    sent = _assemble(load)
    return Composed(
        segments=sent.segments,
        max_output_tokens=output_limit(budget, route, estimated),
        history=load.history,
        trims=() if notice is None else (with_note(notice, above),),
        warnings=warnings,
        estimated_tokens=estimated,
        raw_tokens=load.messages + load.fixed,
        message_tokens=load.messages,
        source=shape.source,
        budget=budget,
        target=target,
        collapsed_turns=load.older,
        images=sent.images,
        shape=shape,
        healed=sent.healed,
    )


@dataclass(frozen=True, slots=True)
class _Sent:
    segments: tuple[Segment, ...]
    images: int
    healed: bool = False


def _assemble(load: Load) -> _Sent:
    history = load.history
    lead = [history.system.piece.segment] if history.system.piece is not None else []
    if history.crumb_present:
        lead.append(history.beside.crumb.segment)
    if history.beside.notes is not None:
        lead.append(history.beside.notes.segment)
    collapsed, whole = load.faces()
    known = history.collapse
    images = sum(face.images for face in whole) + (known.images if collapsed else 0)
    turns = [segment for face in (*collapsed, *whole) for segment in face.segments]
    # A collapsed face was checked when it was made and holds no call, save for odd replies.
    if _pairs_hold([*collapsed, *whole] if collapsed and known.unchecked else whole):
        return _Sent((*lead, *turns), images)
    rows = [row for segment in turns for row in segment.rows]
    return _Sent((*lead, Segment(repair(rows).rows)), images, healed=True)


def _pairs_hold(faces: list[Face]) -> bool:
    ids = [call_id for face in faces for call_id in face.call_ids]
    return len(set(ids)) == len(ids) and all(face.whole_pairs for face in faces)


def _ledger(composed: Composed) -> Ledger:
    history = composed.history
    total = Ledger(0, 0, 0, 0, 0)
    for index, turn in enumerate(history.turns):
        whole = turn.repaired.rows
        older = index < composed.collapsed_turns
        shown = turn.collapsed(composed.shape.callable_tools).rows() if older else whole
        own = set(map(id, whole))
        sent = sum(1 for row in shown if id(row) in own)
        total = replace(
            total,
            recorded=total.recorded + len(turn.rows),
            sent=total.sent + sent,
            collapsed=total.collapsed + len(whole) - sent,
            swept=total.swept + len(turn.rows) - len(whole),
        )
    current, viewed, rounds = history.current, history.shown, history.marks.rounds_cut
    if current is None or viewed is None:
        return total
    omitted = len(current.repaired.rows) - len(viewed.repaired.rows)
    shortened = viewed.shortened_results(rounds)
    return replace(total, shortened=shortened, sent=total.sent - omitted, omitted=omitted)


def with_notes(composed: Composed, text: str, route: Route) -> Composed:
    """The same request with this row behind the breadcrumb, in place of the notes it had. '' for none.

    Composed anew with the history that it leaves, it comes out the same.
    """
    history = copy(composed.history)
    old, new = history.beside.notes, notes_piece(text, history.shared.counter)
    history.beside = replace(history.beside, notes=new)
    at = (history.system.piece is not None) + history.crumb_present
    added = () if new is None else (new.segment,)
    segments = (*composed.segments[:at], *added, *composed.segments[at + (old is not None) :])
    more = (0 if new is None else new.tokens) - (0 if old is None else old.tokens)
    raw = composed.raw_tokens + more
    estimated = composed.shape.calibrated(raw)
    return replace(
        composed,
        segments=segments,
        history=history,
        raw_tokens=raw,
        message_tokens=composed.message_tokens + more,
        estimated_tokens=estimated,
        max_output_tokens=output_limit(composed.budget, route, estimated),
    )


_SMALL = 2000
_FAR_BELOW = 0.4
_BELOW_USUAL = 0.6


def calibration_ratio(reported_input_tokens: int, raw_tokens: int) -> float:
    """reported / estimated for one request, schemas included; 1.0 when either is missing."""
    if reported_input_tokens <= 0 or raw_tokens <= 0:
        return 1.0
    return reported_input_tokens / raw_tokens


def silent_cut(
    composed: Composed, reported_input_tokens: int, usual_ratio: float | None = None
) -> Noticed | None:
    """A warning when the provider counted far fewer tokens than were sent: it cut the prompt itself.

    usual_ratio: calibration_ratio of earlier calls on the route, if any. Pictures are left out of the
    comparison, since their real price varies too much.
    """
    sent = composed.raw_tokens - composed.images * IMAGE_TOKENS
    share = _FAR_BELOW if usual_ratio is None else min(usual_ratio, 1.0) * _BELOW_USUAL
    if reported_input_tokens <= 0 or sent < _SMALL or reported_input_tokens >= sent * share:
        return None
    return Noticed(
        "warning",
        "The provider seems to have cut the prompt",
        f"About {sent} tokens were sent and it counted {reported_input_tokens}. It may run with a smaller "
        "context than the model has: raise it there, or set context_window to what it really uses.",
    )
