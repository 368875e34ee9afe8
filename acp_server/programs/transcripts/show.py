"""A transcript for people's eyes, turn by turn, with marks where the model stopped seeing something. Pure."""

from collections.abc import Iterator

from runtime.transcript.restore import iteration_events, outcome
from runtime.transcript.turn_record import TurnRecord
from runtime.values.events import AgentText, AgentThought, Event, ToolCallStarted
from schemas.transcript import SessionState, TrimStep

RESULT_LINES = 12
"""Lines of a tool's result that are shown unless all is asked for."""
ENDINGS = {
    "cancelled": "cancelled by the user",
    "error": "ended with an error",
    "crash": "broken off: the process died in it",
    "refused": "refused",
}


def turn_text(number: int, turn: TurnRecord, state: SessionState, *, whole: bool) -> Iterator[str]:
    """The lines of a turn. number: of its prompt, if that can be read. whole: tool results are not cut."""
    if state.dropped_turns and turn.turn_id == state.first_turn_id:
        yield from (
            "",
            mark(f"the model sees the conversation from here on ({state.dropped_turns} turns are gone)"),
        )
    if turn.prompt is None:
        yield from ("", "── turn " + "─" * 42, mark("its prompt cannot be read"))
    else:
        yield from ("", f"── turn {number} " + "─" * 40, *quoted(turn.prompt.text))
    for iteration in turn.iterations:
        yield from map(trim_text, iteration.trims)
        for event in iteration_events(iteration):
            yield from event_text(event, whole=whole)
    if turn.end is not None and turn.end.told:
        yield from ("", *turn.end.told.strip().splitlines())
    if how := ENDINGS.get(outcome(turn)):
        yield mark(how)
    yield from map(trim_text, turn.trims_after)


def between_text(turn: TurnRecord) -> Iterator[str]:
    """The lines of what happened between turns."""
    yield from map(trim_text, turn.trims())
    if turn.expand is not None:
        yield mark(f"{turn.expand.restored_turns} earlier turns came back into the model's view")


def quoted(text: str) -> Iterator[str]:
    """The user's words."""
    yield from (f"> {line}".rstrip() for line in text.splitlines() or [""])


def mark(text: str) -> str:
    """A remark that is no part of the conversation."""
    return f"[{text}]"


def trim_text(trim: TrimStep) -> str:
    """A trim, in one line."""
    if trim.strategy == "shorten":
        return mark(f"{trim.dropped_messages} older tool results shortened for the model: {trim.reason}")
    return mark(
        f"{trim.dropped_messages} messages of {trim.dropped_turns} turns left the model's view here, "
        f"{trim.kept_turns} turns stayed: {trim.reason}"
    )


def event_text(event: Event, *, whole: bool) -> Iterator[str]:
    """What was shown."""
    match event:
        case AgentThought():
            yield from ("", *(f"  ({line})" for line in event.text.strip().splitlines()))
        case AgentText():
            yield from ("", *event.text.strip().splitlines())
        case ToolCallStarted():
            yield from (
                "",
                f"* {event.title}: {event.status}",
                *result_text(event.content or "", whole=whole),
            )
        case _:
            pass


def result_text(text: str, *, whole: bool) -> Iterator[str]:
    """A tool's result, indented; its first lines unless all is wanted."""
    lines = text.splitlines()
    shown = lines if whole else lines[:RESULT_LINES]
    yield from (f"    {line}" for line in shown)
    if len(shown) < len(lines):
        yield f"    … {len(lines) - len(shown)} more lines"
