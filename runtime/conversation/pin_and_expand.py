"""Turns that the user pins, which no trim takes, and dropped turns brought back when limits have grown.

Both are durable before they are in force. Nothing comes back by itself; the transcript has all turns, the cut
only moves. Knows no command and no protocol.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import history_from, used_call_ids
from runtime.history.live.goal import index_of
from runtime.history.live.history import restore_history
from runtime.history.request.budget import effective_context_budget, trim_target
from runtime.history.request.compose import compose
from runtime.history.request.meter import CallShape, weigh
from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX
from runtime.transcript.restore import JoinedTurn, join, turn_rows
from runtime.transcript.session_state import keep_what_counts, limits_of, opens_turn
from runtime.transcript.stored_history import entry_of, first_kept_entry
from runtime.transcript.turn_record import PAGE, TurnRecord, fold, read_turns
from runtime.values.errors import InvalidParams
from runtime.values.events import Noticed
from runtime.values.grace import withstanding
from runtime.values.ids_and_time import new_id
from runtime.values.stored import HeadChange, Store, StoredEntry
from schemas.transcript import ExpandStep, SessionState


async def turn_numbers(store: Store, session_id: str) -> dict[int, str]:
    """The id of the turn that each prompt is part of, by the prompt's number; '' for one the model never
    had.
    """
    found: dict[int, str] = {}
    turn_id = ""
    async with aclosing(read_turns(store, session_id)) as turns:
        async for turn in turns:
            if turn.prompt is None:
                continue
            known = bool(turn_rows(turn))
            if known and not (turn_id and turn.prompt.text.startswith(TOOL_RESULTS_PREFIX)):
                turn_id = turn.turn_id
            found[len(found) + 1] = turn_id if known else ""
    return found


async def pin(talk: Conversation, turn_id: str) -> int:
    """Keep a turn through every trim; what all pinned turns cost, tokens. Raises InvalidParams with the
    reason.
    """
    keeper = talk.keeper
    if index_of(keeper.history, turn_id) is None:
        raise InvalidParams("The model does not see that turn any more, so it cannot be pinned.")
    pins = tuple(dict.fromkeys((*keeper.state.pins, turn_id)))
    cost, room = cost_of(talk, pins), room_of(talk)
    if cost > room:
        raise InvalidParams(
            f"Pinned, it would not fit: all pinned turns would take about {cost} tokens, and beside the "
            f"system prompt and the tools there is room for {room}. Unpin another, or raise the limit."
        )
    await _store(talk, pins)
    return cost


async def unpin(talk: Conversation, turn_id: str) -> bool:
    """Let trims take a turn again. False: it was not pinned."""
    pins = talk.keeper.state.pins
    if turn_id not in pins:
        return False
    await _store(talk, tuple(one for one in pins if one != turn_id))
    return True


def cost_of(talk: Conversation, pins: tuple[str, ...]) -> int:
    """What these turns cost as older ones, tokens."""
    names = frozenset(talk.setup.tools)
    turns = talk.keeper.history.turns
    return sum(turn.collapsed(names).tokens for turn in turns if turn.turn_id in pins)


def room_of(talk: Conversation) -> int:
    """What there is for turns below the limit, tokens."""
    keeper, profile = talk.keeper, talk.setup.profile
    shape = CallShape(keeper.native_specs, frozenset(talk.setup.tools), calibration=keeper.calibration)
    load = weigh(keeper.history, shape, profile.keep_tool_context_turns)
    turns = sum(load.face(index).tokens for index in range(keeper.history.turn_count))
    fixed = load.messages - turns + load.fixed
    target = trim_target(effective_context_budget(profile, keeper.route), keeper.route)
    return max(int(target / max(keeper.calibration, 1.0)) - fixed, 0)


async def _store(talk: Conversation, pins: tuple[str, ...]) -> None:
    keeper = talk.keeper
    state = keeper.state.model_copy(update={"pins": pins})
    await talk.store.append(talk.session_id, (), head=HeadChange(state=state.model_dump_json()))
    keeper.state = state
    keep_what_counts(keeper.history, state)


@dataclass(frozen=True, slots=True)
class Expansion:
    """Dropped turns that would fit, the newest ones. first_turn_id, first_seq: of the oldest of them."""

    turns: int = 0
    first_turn_id: str = ""
    first_seq: int = 0


async def offer(talk: Conversation) -> None:
    """Say so when limits were raised since the last turn and dropped turns would fit them now."""
    state, keeper = talk.keeper.state, talk.keeper
    before, now = state.limits, limits_of(talk.setup.profile, keeper.route)
    raised = before is not None and (now.count > before.count or now.tokens > before.tokens)
    if not state.dropped_turns or not raised:
        return
    found = await could_return(talk)
    if found.turns:
        text = (
            f"{found.turns} of the {state.dropped_turns} earlier turns that the model no longer sees would "
            "fit the limits that are in force now. `/expand` brings them back."
        )
        await talk.emit(Noticed("info", "Earlier turns could come back", text))


async def could_return(talk: Conversation) -> Expansion:
    """Which dropped turns fit beside those that are kept, with a place left for the next prompt."""
    state, keeper = talk.keeper.state, talk.keeper
    if not state.dropped_turns:
        return Expansion()
    limits = limits_of(talk.setup.profile, keeper.route)
    first = await entry_of(talk.store, talk.session_id, state.first_turn_id)
    room = min(limits.count - 1 - keeper.history.turn_count, state.dropped_turns)
    earlier = await newest_before(talk, first, room, limits.tokens)
    turns: list[JoinedTurn] = []
    for turn in earlier:
        join(turns, turn)
    fitting = fit(talk, turns)
    opening = [turn for turn in earlier if opens_turn(turn, first=False)][-fitting:] if fitting else []
    if not opening:
        return Expansion()
    return Expansion(len(opening), opening[0].turn_id, opening[0].first_seq)


async def newest_before(talk: Conversation, before: int, count: int, tokens: int) -> list[TurnRecord]:
    """Records of at most `count` turns before that entry, oldest first, up to about so many tokens."""
    held = talk.keeper.state.held
    found: list[TurnRecord] = []
    opened = size = 0
    async with aclosing(records_before(talk.store, talk.session_id, before)) as records:
        async for record in records:
            if opened >= count or size > 4 * tokens or record.turn_id in held:
                break
            rows = turn_rows(record)
            if rows:
                found.append(record)
                opened += opens_turn(record, first=False)
                size += sum(len(row.content) for row in rows)
    # A prompt that joins the turn before it comes back only together with that one.
    while found and not opens_turn(found[-1], first=False):
        found.pop()
    return found[::-1]


async def records_before(store: Store, session_id: str, before: int) -> AsyncGenerator[TurnRecord, None]:
    """All records before that entry, newest first. Close it (aclosing) when it is left early."""
    size = PAGE
    while before > 1:
        start = max(before - 1 - size, 0)
        page = await store.entries(session_id, after=start, limit=before - 1 - start)
        records: list[TurnRecord] = []
        whole = [*fold(records, [entry for entry in page if entry.seq < before]), *records]
        if start:
            # The first of them may have begun before the page.
            del whole[:1]
            if not whole:
                size *= 2
                continue
        for record in reversed(whole):
            yield record
        if not start:
            return
        before = whole[0].first_seq


def fit(talk: Conversation, earlier: list[JoinedTurn]) -> int:
    """How many of the earlier turns, the newest ones, the next request would still have."""
    keeper, setup = talk.keeper, talk.setup
    kept = [(turn.turn_id, list(turn.rows)) for turn in keeper.history.turns]
    held = keeper.history.beside.held
    turns = [*kept[:held], *earlier, *kept[held:]]
    history = restore_history(turns, system=keeper.system, counter=setup.counter, crumb_present=True)
    history.beside = replace(keeper.history.beside, crumb=history.beside.crumb)
    composed = compose(
        history,
        setup.profile,
        keeper.route,
        keeper.native_specs,
        callable_tools=frozenset(setup.tools),
        calibration=keeper.calibration,
        check_capacity=False,
    )
    left = {turn.turn_id for turn in composed.history.turns}
    lost = next(
        (at for at, (turn_id, _) in enumerate(reversed(earlier)) if turn_id not in left), len(earlier)
    )
    return lost if all(turn_id in left for turn_id, _ in kept) else 0


async def expand(talk: Conversation) -> int:
    """Bring back the dropped turns that fit; how many. Durable before it is in force. No turn of the model
    may be running.
    """
    found = await could_return(talk)
    if not found.turns:
        return 0
    keeper = talk.keeper
    state = expanded(keeper.state, found)
    first = await first_kept_entry(talk.store, talk.session_id, state)
    used = await used_call_ids(talk.store, talk.session_id, first)
    # Whoever cancels here must find it recorded and in force, or neither.
    async with withstanding():
        await record(talk, found, state)
        keeper.state = state
        marks = keeper.history.marks
        keeper.history = await history_from(talk, first, used)
        keeper.history.marks = marks
        keeper.composed = keeper.fitted(check_capacity=False)
        await keeper.show_usage()
    return found.turns


def expanded(state: SessionState, found: Expansion) -> SessionState:
    """The cut with those turns back."""
    dropped = max(state.dropped_turns - found.turns, 0)
    return state.model_copy(
        update={
            "first_turn_id": found.first_turn_id if dropped else "",
            "dropped_turns": dropped,
            "history_has_trim_breadcrumb": dropped > 0,
            "held": state.held if dropped else (),
            "notes": state.notes if dropped else "",
        }
    )


async def record(talk: Conversation, found: Expansion, state: SessionState) -> None:
    """The step and the cut it leaves, in one commit."""
    name = f"expand-{new_id()}"
    step = ExpandStep(
        restored_turns=found.turns,
        kept_turns=talk.keeper.history.turn_count + found.turns,
        first_turn_id=state.first_turn_id,
        dropped_turns=state.dropped_turns,
        held=state.held,
    )
    entry = StoredEntry(name, f"turn:{name}", step.kind, step.model_dump_json().encode())
    await talk.store.append(talk.session_id, [entry], head=HeadChange(state=state.model_dump_json()))
