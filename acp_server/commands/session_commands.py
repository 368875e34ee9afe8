"""The commands about the conversation itself: `/compact`, `/clear`, `/expand`, `/rewind`, `/continue`.

Each gives the text of its answer. Nothing that is stored is ever changed by them.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import aclosing

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import rewind
from runtime.conversation.pin_and_expand import expand
from runtime.history.live.history import History
from runtime.history.request.trims import clear_by_user, trim_by_user
from runtime.history.rows.notice import TrimNotice
from runtime.session.tool_calls import LOOKING
from runtime.transcript.turn_record import read_turns
from runtime.values.errors import InvalidParams
from runtime.values.rows import Row
from runtime.values.texts import CONTINUE, INTERRUPTED_RESULT, NOTES, UNFINISHED

SHOWN_TURNS = 10
SHOWN_TEXT = 70

KEPT_TURNS = 2
"""What `/compact` keeps without a number."""
BACK = "The conversation itself stays as it is; `/expand` lets the model see as much of it as fits."

NOTHING_BROKEN = "There is nothing to continue: the last turn was not interrupted."
ASK_FIRST = (
    "Before I go on: these calls were started and have no result, so they may have had an effect.\n\n"
    "{calls}\n\nLook whether they did. `/continue anyway` goes on; the model is told that they may have run. "
    "Or say in your own words what to do."
)


async def rewind_to(talk: Conversation, rest: str) -> str:
    """`/rewind N`: another session that ends with turn N. Without a number: the newest turns."""
    word = rest.strip()
    if not word.isdecimal():
        return await turns_to_choose(talk)
    source = await talk.store.session(talk.session_id)
    if source is None:
        return "This session is not stored, so there is nothing to go back to."
    try:
        made = await rewind(talk.store, source, int(word), now=talk.setup.now())
    except InvalidParams as error:
        return error.message
    titled = f", titled “{made.title}”" if made.title else ""
    return (
        f"Session `{made.session_id}` holds this conversation up to the end of turn {word}{titled}. Open it "
        "from your editor's list of sessions to go on from there. This session stays as it is."
    )


async def turns_to_choose(talk: Conversation) -> str:
    """The numbers of the newest turns, with how each began."""
    newest: deque[str] = deque(maxlen=SHOWN_TURNS)
    number = 0
    async with aclosing(read_turns(talk.store, talk.session_id)) as turns:
        async for turn in turns:
            if turn.prompt is not None:
                number += 1
                newest.append(f"{number}. {beginning(turn.prompt.text)}")
    if not number:
        return "There is no turn to go back to yet."
    return "\n".join(
        ["`/rewind N` makes another session that ends with turn N. The newest turns:", "", *newest]
    )


def beginning(text: str) -> str:
    """The first words of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_TEXT else f"{line[: SHOWN_TEXT - 1].rstrip()}…"


async def compact(talk: Conversation, rest: str) -> str:
    """`/compact N`: the model sees only the newest N turns from now on."""
    word = rest.strip()
    if word and (not word.isdecimal() or not int(word)):
        return "`/compact N` keeps the newest N turns, at least 1. `/clear` keeps none."
    keep = int(word) if word else KEPT_TURNS
    if not await _shorten(talk, *trim_by_user(talk.keeper.history, keep)):
        count = talk.keeper.history.turn_count
        return f"Nothing to leave out: the model sees {_turns(count)} of this conversation."
    return f"The model sees the newest {_turns(keep)} from now on. {BACK}"


async def clear(talk: Conversation, rest: str) -> str:
    """`/clear`: the model sees nothing of the conversation so far."""
    if not await _shorten(talk, *clear_by_user(talk.keeper.history)):
        return "Nothing to leave out: the model has seen nothing of this conversation yet."
    return f"The model starts anew: it sees nothing of what was said above. {BACK}"


async def _shorten(talk: Conversation, history: History, notice: TrimNotice | None) -> bool:
    """Record and tell what the user has taken out; False when that is nothing."""
    keeper, recorder = talk.keeper, talk.notes.recorder
    if notice is None or recorder is None:
        return False
    if keeper.composed is None:
        keeper.composed = keeper.fitted(check_capacity=False)
    await keeper.shorten(history, notice, recorder, 0)
    keeper.composed = keeper.fitted(check_capacity=False)
    await keeper.show_usage()
    return True


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


async def bring_back(talk: Conversation, rest: str) -> str:
    """`/expand`: dropped turns that fit the present limits are sent to the model again."""
    dropped = talk.keeper.state.dropped_turns
    if not dropped:
        return "Nothing was left out: the model sees the whole conversation."
    back = await expand(talk)
    if not back:
        return f"{dropped} earlier turns are left out, and none of them fits the present limits."
    left = talk.keeper.state.dropped_turns
    rest_of_it = f" {left} earlier ones stay left out." if left else " Nothing is left out any more."
    return f"The model sees {back} earlier turn{'' if back == 1 else 's'} again.{rest_of_it}"


def refusal_to_continue(talk: Conversation, prompt: str) -> str | None:
    """Why an interrupted turn is not gone on with right now; None when it is."""
    if not was_interrupted(talk.keeper.history):
        return NOTHING_BROKEN
    unsure = list(unfinished_calls(talk)) if prompt == CONTINUE else []
    if not unsure:
        return None
    return ASK_FIRST.format(calls="\n".join(f"- {call}" for call in unsure))


def was_interrupted(history: History) -> bool:
    """Whether the newest turn ends with the line that says so."""
    rows = history.current.rows if history.current is not None else ()
    return bool(rows) and rows[-1].role == "assistant" and rows[-1].content.endswith(tuple(NOTES.values()))


def unfinished_calls(talk: Conversation) -> Iterator[str]:
    """The calls of the newest turn that were started, have no result and may have changed something."""
    turn = talk.keeper.history.current
    called: dict[str, str] = {}
    for row in turn.rows if turn is not None else ():
        called |= {call.id: f"`{call.name}` {beginning(call.arguments)}" for call in row.tool_calls}
        if row.role == "tool" and row.content in UNFINISHED:
            shown = called.get(row.tool_call_id or "", "a call")
            if not only_looks(talk, shown):
                yield shown
        elif in_text(row):
            yield "a call of the last reply"


def only_looks(talk: Conversation, shown: str) -> bool:
    """Whether the call, as it is shown, is one of a tool that changes nothing."""
    tool = talk.setup.tools.get(shown.split("`")[1]) if shown.startswith("`") else None
    return tool is not None and tool.kind in LOOKING


def in_text(row: Row) -> bool:
    """Whether the row holds results of calls that stood in a text, one of them unfinished by a crash."""
    return row.origin == "runtime" and INTERRUPTED_RESULT in row.content
