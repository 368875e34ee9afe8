"""The commands about what the model sees: `/context`, `/pin`, `/goal`. Each gives the text of its answer."""

from collections.abc import Mapping

from acp_server.commands.session_commands import beginning
from runtime.conversation.conversation import Conversation
from runtime.conversation.pin_and_expand import cost_of, pin, turn_numbers, unpin
from runtime.history.live.goal import index_of
from runtime.history.request.meter import CallShape, Meter, TurnLine, meter
from runtime.transcript.session_state import goal_of
from runtime.values.errors import InvalidParams

MOST_TURNS = 60


async def show_context(talk: Conversation, rest: str) -> str:
    """`/context`: what fills the context, turn by turn, and what would leave it next."""
    numbers = await turn_numbers(talk.store, talk.session_id)
    return "\n".join(meter_lines(meter_of(talk), first_numbers(numbers), talk.keeper.state.dropped_turns))


def meter_of(talk: Conversation) -> Meter:
    """What the next request would have of this session, before its prompt."""
    keeper = talk.keeper
    shape = CallShape(keeper.native_specs, frozenset(talk.setup.tools), calibration=keeper.calibration)
    return meter(keeper.history, shape, talk.setup.profile, keeper.route)


def first_numbers(numbers: Mapping[int, str]) -> dict[str, int]:
    """The number of the prompt that opened each turn."""
    found: dict[str, int] = {}
    for number, turn_id in numbers.items():
        found.setdefault(turn_id, number)
    return found


def meter_lines(found: Meter, numbers: Mapping[str, int], dropped: int) -> list[str]:
    """The meter for people, as a table."""
    rows = [("system prompt", found.system, ""), ("tools", found.tools, "")]
    if found.breadcrumb:
        rows.append(("line about dropped turns", found.breadcrumb, f"{dropped} turns are dropped"))
    if found.notes:
        rows.append(("notes about dropped turns", found.notes, ""))
    hidden = found.turns[:-MOST_TURNS]
    if hidden:
        rows.append((f"{len(hidden)} older turns", sum(turn.tokens for turn in hidden), ""))
    for turn in found.turns[-MOST_TURNS:]:
        rows.append((f"turn {numbers.get(turn.turn_id, '?')}", turn.tokens, remarks(turn)))
    lines = [
        "| | tokens | |",
        "|---|---:|---|",
        *(f"| {name} | {size} | {told} |" for name, size, told in rows),
    ]
    lines.append(f"| **together** | **{found.estimated}** | |")
    counted = f", which the provider counts as about {found.used}" if found.used != found.estimated else ""
    window = f"; the window has {found.window}" if found.window_known else "; the window is not known"
    lines += ["", f"Estimated{counted}. A trim starts above {found.target}: {found.free} are free{window}."]
    if found.saved:
        lines.append(f"Leaving out the tool traffic of older turns saves {found.saved}.")
    return lines


def remarks(turn: TurnLine) -> str:
    """What is to be said of a turn."""
    told = {
        f"{turn.tools} in tool rows": turn.tools > 0,
        f"collapsed, {turn.saved} saved": turn.saved > 0,
        "pinned": turn.pinned,
        "the goal's turn": turn.goal,
        "**leaves next**": turn.leaves_next,
    }
    return ", ".join(text for text, holds in told.items() if holds)


async def pin_turn(talk: Conversation, rest: str) -> str:
    """`/pin N`: keep a turn through every trim; `/pin off N` lets it go. Without a number: the pinned
    ones.
    """
    words = rest.split()
    off = words[:1] == ["off"]
    numbers = await turn_numbers(talk.store, talk.session_id)
    if not words[off:]:
        return pinned_turns(talk, first_numbers(numbers))
    word = words[off]
    turn_id = numbers.get(int(word), "") if word.isdecimal() and len(word) < 10 else ""
    if not turn_id:
        return f"There is no turn {word[:20]} that the model has seen. `/context` has the numbers."
    if off:
        return (
            f"Turn {word} is not pinned any more."
            if await unpin(talk, turn_id)
            else f"Turn {word} was not pinned."
        )
    try:
        cost = await pin(talk, turn_id)
    except InvalidParams as error:
        return error.message
    return f"Turn {word} stays through every trim. What is pinned takes about {cost} tokens."


def pinned_turns(talk: Conversation, numbers: Mapping[str, int]) -> str:
    """The list of pinned turns."""
    pins = talk.keeper.state.pins
    if not pins:
        return "Nothing is pinned. `/pin N` keeps turn N through every trim; `/context` has the numbers."
    history = talk.keeper.history
    lines = [f"Pinned, about {cost_of(talk, pins)} tokens together (`/pin off N` lets one go):", ""]
    for turn_id in pins:
        index = index_of(history, turn_id)
        text = "not in view" if index is None else beginning(history.turns[index].rows[0].content)
        lines.append(f"- turn {numbers.get(turn_id, '?')}: {text}")
    return "\n".join(lines)


async def show_goal(talk: Conversation, rest: str) -> str:
    """`/goal`: what this conversation is about. `/goal TEXT` is a prompt and never comes here."""
    goal = goal_of(talk.keeper.state)
    if goal is None:
        return "No goal is set. `/goal TEXT` sets one and asks for it."
    earlier = " Requests before it count as background." if goal.supersedes else ""
    return f"The goal is: {goal.text}{earlier}"
