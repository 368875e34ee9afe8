"""Turns that the user has pinned: no trim takes them. Durable before it is in force; knows no command."""

from contextlib import aclosing

from runtime.conversation import Conversation
from runtime.errors import InvalidParams
from runtime.goals import keep_what_counts
from runtime.history.boundaries import TOOL_RESULTS_PREFIX
from runtime.history.budget import effective_context_budget, trim_target
from runtime.history.goal import index_of
from runtime.history.load import CallShape, weigh
from runtime.record import read_turns
from runtime.restore import turn_rows
from runtime.stored import HeadChange, Store


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
