"""From a recorded turn to the model's rows, and to the events that show it again. Pure; knows no store.

Pictures of a prompt come out of its content blocks as they are stored; the same blocks always give the same
pictures, so a session that is loaded sends what the living one sent.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

import orjson

from runtime.history.live.without_parts import without_pictures
from runtime.history.rows.boundaries import TOOL_RESULTS_PREFIX, is_tool_result_carrier
from runtime.history.rows.calls_in_text import results_text, visible_text
from runtime.history.rows.collapse import truncate_tool_result
from runtime.history.rows.tool_rounds import LoopChange, changed_rows
from runtime.transcript.turn_record import Iteration, TurnRecord
from runtime.values.events import (
    AgentText,
    AgentThought,
    Event,
    FileDiff,
    Location,
    PlanChanged,
    ToolCallStarted,
    ToolKind,
    UserMessage,
)
from runtime.values.prompt import PLAN_TOOL, plan_entries
from runtime.values.rows import Image, Row, ToolCall
from runtime.values.texts import FAILED_TURN_RESULT, INTERRUPTED_RESULT, NOTES
from schemas.base import is_shallow
from schemas.transcript import CallRecord, ContextStep, ReplyStep, ToolStep

_MAGIC = (
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
)


def picture_type(data: str) -> str:
    """The MIME type by the first bytes, whatever the sender calls it; '' for what models do not take.

    data: base64; what is none is no picture.
    """
    try:
        head = base64.b64decode(data, validate=True)[:16]
    except (binascii.Error, ValueError):
        return ""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for kind, magic in _MAGIC if head.startswith(magic)), "")


def pictures(blocks: Sequence[Mapping[str, object]]) -> tuple[Image, ...]:
    """The pictures that a model can be sent, in order: image blocks, and embedded resources that are one."""
    found = (Image(picture_type(data), data, uri) for data, uri in _encoded(blocks))
    return tuple(image for image in found if image.mime_type)


def prompt_row(text: str, blocks: Sequence[Mapping[str, object]]) -> Row:
    """The row that a prompt is for the model."""
    row = Row("user", text, images=pictures(blocks))
    # One that goes on with a broken turn reads like results, and may not be shortened like them.
    return replace(row, origin="user") if is_tool_result_carrier(row) else row


def _encoded(blocks: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, str]]:
    for block in blocks:
        if block.get("type") == "image":
            yield _text(block, "data"), _text(block, "uri")
        elif block.get("type") == "resource":
            contents = block.get("resource")
            inside = contents if isinstance(contents, Mapping) else {}
            yield _text(inside, "blob"), _text(inside, "uri")


def _text(block: Mapping[str, object], key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""


TOOL_KINDS: tuple[ToolKind, ...] = get_args(ToolKind)
LAST_LINE = 2**32 - 1


def turn_rows(turn: TurnRecord, before: Sequence[Row] = (), *, folded: bool = True) -> list[Row]:
    """The rows of the turn as the model gets them: pairs complete, a broken turn closed and saying so.

    Empty when the turn is not for the model (it was refused before the model saw it, or never had a prompt).
    before: rows of the turn that this one joins; they come first. folded=False: also with those rounds that
    the turn's own loop has folded away.
    """
    if turn.prompt is None or (turn.end is not None and turn.end.excluded):
        return []
    rows = [*before, opening_row(turn, prompt_row(turn.prompt.text, turn.prompt.blocks))]
    for iteration in turn.iterations:
        rows += runtime_rows(iteration)
        for step in iteration.contexts if folded else ():
            change = change_in(step)
            rows = rows if change is None else changed_rows(rows, change)
        rows += iteration_rows(replace(iteration, runtime=[]), open_result(turn))
    return closed(rows, outcome(turn))


def opening_row(turn: TurnRecord, row: Row) -> Row:
    """The prompt's row, without pictures if they were refused in the turn."""
    attempts = (attempt for iteration in turn.iterations for attempt in iteration.attempts)
    why = next((attempt.error for attempt in attempts if attempt.pictures), None)
    return row if why is None else without_pictures(row, why)


def change_in(step: ContextStep) -> LoopChange | None:
    """What a recorded pass of a context trimmer changed; None when it failed."""
    return None if step.failure else LoopChange(step.kept, step.outputs, step.persist)


def runtime_rows(iteration: Iteration) -> list[Row]:
    """The rows that the loop put in before the call."""
    return [Row("user", step.text, origin="runtime") for step in iteration.runtime]


JoinedTurn = tuple[str, list[Row]]
"""A turn's id and its rows, with those of the prompts that joined it."""


def join(turns: list[JoinedTurn], turn: TurnRecord) -> None:
    """Add a record's rows: as a turn, or to the turn that its prompt joins."""
    joins = bool(turns) and turn.prompt is not None and turn.prompt.text.startswith(TOOL_RESULTS_PREFIX)
    turn_id, before = turns[-1] if joins else (turn.turn_id, [])
    if rows := turn_rows(turn, before):
        turns[-1 if joins else len(turns) :] = [(turn_id, rows)]


def outcome(turn: TurnRecord) -> str:
    """How the turn ended: the recorded outcome, or `crash`."""
    return "crash" if turn.end is None else turn.end.outcome


def open_result(turn: TurnRecord) -> str:
    """The text that stands for a result that was never recorded."""
    return INTERRUPTED_RESULT if turn.end is None else FAILED_TURN_RESULT


def iteration_rows(iteration: Iteration, missing: str) -> Iterator[Row]:
    """Runtime rows, the reply, and a result for each of its calls."""
    yield from runtime_rows(iteration)
    reply = iteration.shown()
    if reply is None:
        return
    if reply.text or reply.calls:
        yield reply_row(reply)
    results = [
        (call, missing if (tool := iteration.tools.get(call.call_id)) is None else model_text(tool))
        for call in reply.calls
    ]
    if reply.prompt_mode and results:
        yield Row("user", results_text([(call.name, text) for call, text in results]), origin="runtime")
    elif results:
        yield from (Row("tool", text, tool_call_id=call.id) for call, text in results)


def reply_row(reply: ReplyStep) -> Row:
    """The assistant row of a reply. In prompt mode the calls are part of its text."""
    if reply.prompt_mode:
        return Row("assistant", reply.text)
    calls = tuple(ToolCall(c.id, c.name, c.arguments) for c in reply.calls)
    # Only calls make a provider ask for its reasoning again.
    reasoning = reply.reasoning if calls else ""
    return Row("assistant", reply.text, tool_calls=calls, reasoning=reasoning or None)


def model_text(step: ToolStep) -> str:
    """A result as the model gets it: cut to its limit, the same each time."""
    return truncate_tool_result(step.text, step.limit).text if step.limit else step.text


def closed(rows: list[Row], how: str) -> list[Row]:
    """The rows with the line that tells the model how a broken turn ended; an answered turn is left as it is.

    The line joins a last answer that was broken off, so that no two assistant rows stand together.
    """
    note = NOTES.get(how)
    if note is None:
        return rows
    last = rows[-1] if rows else None
    if last is not None and last.role == "assistant" and not last.tool_calls:
        return [*rows[:-1], replace(last, content=f"{last.content}\n\n{note}")]
    return [*rows, Row("assistant", note)]


def turn_events(turn: TurnRecord, *, restored_dropped_turns: int = 0) -> Iterator[Event]:
    """What the person saw of the turn, in order, each message in one piece, each call in its final state."""
    if turn.prompt is not None:
        for block in turn.prompt.blocks:
            yield UserMessage(turn.prompt.message_id, block, restored_dropped_turns)
            restored_dropped_turns = 0
    for iteration in turn.iterations:
        yield from iteration_events(iteration)
    if turn.end is not None and turn.end.told:
        yield AgentText(turn.end.told_id, turn.end.told)


def iteration_events(iteration: Iteration) -> Iterator[Event]:
    """Thought, text, then the calls with what became of them."""
    reply = iteration.shown()
    if reply is None:
        return
    if reply.thought:
        yield AgentThought(reply.thought_id, reply.thought)
    text = visible_text(reply.text) if reply.prompt_mode else reply.text
    if text:
        yield AgentText(reply.message_id, text)
    for call in reply.calls:
        step = iteration.tools.get(call.call_id)
        yield call_event(call, step)
        if call.name == PLAN_TOOL and step is not None and step.status == "completed":
            yield PlanChanged(plan_entries(step.raw_input))


def call_event(call: CallRecord, step: ToolStep | None) -> ToolCallStarted:
    """A call in its final state; one without a result failed when the process died."""
    if step is None:
        return ToolCallStarted(
            call.call_id,
            call.name,
            call.name,
            "other",
            arguments_object(call.arguments),
            status="failed",
            content=INTERRUPTED_RESULT,
        )
    return ToolCallStarted(
        call.call_id,
        call.name,
        step.title or call.name,
        next((kind for kind in TOOL_KINDS if kind == step.tool_kind), "other"),
        step.raw_input,
        tuple(Location(path, line_number(line)) for path, line in step.locations),
        step.status,
        step.shown or step.text,
        shown_diffs(step),
    )


def line_number(line: int | None) -> int | None:
    """A line as a client takes it."""
    return line if line is not None and 0 <= line <= LAST_LINE else None


def arguments_object(arguments: str) -> Mapping[str, object]:
    """A call's arguments as an object; what is none, or nests too deep to be written, is under one key."""
    try:
        value = orjson.loads(arguments or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) and is_shallow(value) else {"arguments": arguments}


def shown_diffs(step: ToolStep) -> tuple[FileDiff, ...]:
    """What a call changed, for whoever watches."""
    return tuple(FileDiff(diff.path, diff.old_text, diff.new_text) for diff in step.diffs)
