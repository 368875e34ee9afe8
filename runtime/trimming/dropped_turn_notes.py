"""Has a model write what stands for turns that a trim drops. Whatever goes wrong, they are left out plainly.

One text covers everything that was dropped so far: each time the notes before it are rewritten with it.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import trio

from runtime.history.live.goal import goal_index
from runtime.history.live.history import History
from runtime.history.live.preamble import NOTES_HEADER, SUPERSEDED, notes_of, notes_piece
from runtime.history.live.turn import Turn
from runtime.history.request.compose import Composed, with_notes
from runtime.history.request.limits import notes_room
from runtime.history.rows.collapse import truncate_tool_result
from runtime.history.rows.notice import TrimNotice
from runtime.setup.session_setup import SUMMARY_SECONDS, Setup, Summary, checked_quotes
from runtime.transcript.usage import usage_record
from runtime.values.errors import WholeturnError
from runtime.values.profiles import Route
from runtime.values.rows import Row
from schemas.transcript import SummaryUsage

log = logging.getLogger("wholeturn.history")

LONGEST_TEXT = 4000
"""Bytes of one message that are summarised; of a tool's result a quarter."""
WORDS_A_TOKEN = 0.6

INSTRUCTIONS = """\
Below is the beginning of a conversation between a user and an agent, in the order in which it took \
place. It will no longer be shown to the agent; your notes will. Write what of it may still be needed: \
what was asked, what was done about it, what was found (paths, names, numbers, exact errors), what was \
decided and what was dropped. Report in the past tense only. Set no task, list nothing as pending, give \
no advice, quote nobody unless word for word. A request that was withdrawn or answered is reported as \
that. At most {words} words."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A trimmed request with the notes, if there are any. summary: new ones; failure: why there are none."""

    composed: Composed
    notice: TrimNotice
    summary: str = ""
    failure: str = ""
    used: SummaryUsage | None = None

    def facts(self) -> dict[str, object]:
        """What the trim's step says of it."""
        return {
            "summary": self.summary,
            "summary_failure": self.failure,
            "used": self.used,
            "rounds_cut": self.composed.history.marks.rounds_cut,
        }


async def noted(before: History, composed: Composed, notice: TrimNotice, setup: Setup, route: Route) -> Noted:
    """The request with notes about what the trim dropped of the history before. May take a minute."""
    kept = {turn.seq for turn in composed.history.turns}
    gone = [turn for turn in before.turns if turn.seq not in kept]
    if setup.profile.dropped_turns != "summarize" or not gone:
        return Noted(composed, notice)
    earlier = before.beside.notes_text
    source = told(earlier, gone)
    room = notes_room(composed.target, setup.profile)
    answer, failure = await _asked(setup, source, room)
    used = None
    if answer is not None and answer.usage is not None:
        used = SummaryUsage(route=answer.route_id, usage=usage_record(answer.usage))
    if answer is None or not answer.text:
        return _without(composed, notice, failure or "The summary was empty.", used)
    text = truncated(checked_quotes(answer.text, source), room * 3)
    text = notes_of(text, superseded=SUPERSEDED in earlier or _superseded(before, gone))
    piece = notes_piece(text, before.shared.counter)
    replaced = sum(turn.whole().tokens for turn in gone) + before.beside.notes_tokens
    if piece is None or piece.tokens >= replaced:
        return _without(composed, notice, "The summary was not smaller than what it stands for.", used)
    return Noted(with_notes(composed, text, route), replace(notice, summary=text), text, "", used)


async def _asked(setup: Setup, source: str, room: int) -> tuple[Summary | None, str]:
    if setup.summarise is None:
        return None, "There is no model to write the summary."
    with trio.move_on_after(SUMMARY_SECONDS):
        try:
            return await setup.summarise(INSTRUCTIONS.format(words=int(room * WORDS_A_TOKEN)), source), ""
        except WholeturnError as error:
            return None, f"The summary failed: {error.message}"
        except Exception:
            log.exception("the summary of dropped turns failed")
            return None, "The summary failed; the log has the details."
    return None, f"The summary took longer than {SUMMARY_SECONDS:.0f} s."


def _without(composed: Composed, notice: TrimNotice, failure: str, used: SummaryUsage | None) -> Noted:
    note = f"{notice.note} No summary of them was made. {failure}".strip()
    return Noted(composed, replace(notice, note=note), failure=failure, used=used)


def _superseded(before: History, gone: Sequence[Turn]) -> bool:
    """Whether requests from before the current goal are among those that go."""
    goal = goal_index(before)
    return bool(goal) and any(turn.seq < before.turns[goal or 0].seq for turn in gone)


def truncated(text: str, size: int) -> str:
    """At most that many bytes, cut at the end, with a sign that it was."""
    raw = text.encode("utf-8", "surrogatepass")
    return text if len(raw) <= size else f"{raw[:size].decode('utf-8', 'ignore').rstrip()}…"


def told(earlier: str, gone: Sequence[Turn]) -> str:
    """What is to be summarised, as the model that does it reads it."""
    notes = earlier.removeprefix(NOTES_HEADER).replace(SUPERSEDED, "").strip()
    lines = [f"<notes_about_what_came_before>\n{notes}\n</notes_about_what_came_before>"] if notes else []
    for turn in gone:
        lines += ["<turn>", *_rows(turn.repaired.rows), "</turn>"]
    return "\n".join(lines)


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        size = LONGEST_TEXT // 4 if row.role == "tool" else LONGEST_TEXT
        text = truncate_tool_result(row.content, size).text
        if text.strip():
            yield f"{row.role}: {text}"
        for call in row.tool_calls:
            yield f"call {call.name}: {truncate_tool_result(call.arguments, LONGEST_TEXT // 4).text}"
