"""What was shown of a turn that runs, so that who comes in the middle sees it whole. Knows no client."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from runtime.events import AgentText, AgentThought, Event, ToolCallChanged, ToolCallStarted, UserMessage

MOST_MESSAGES = 256
"""Messages and calls that are kept: those before are stored, and a replay shows them."""

Text = AgentText | AgentThought


def key_of(event: Event) -> str:
    """What an event belongs to: the id of its message or call; '' for one that stands alone."""
    match event:
        case UserMessage() | AgentText() | AgentThought():
            return event.message_id
        case ToolCallStarted() | ToolCallChanged():
            return event.call_id
        case _:
            return ""


class Running:
    """The newest messages and calls of one turn, each with all that was shown of it."""

    def __init__(self) -> None:
        self._shown: dict[str, list[Event]] = {}

    def note(self, event: Event) -> None:
        """It was shown now. What was left out before stays out: half a message is worse than none."""
        key = key_of(event)
        if not key:
            return
        if key not in self._shown and isinstance(event, ToolCallChanged):
            return
        shown = self._shown.setdefault(key, [])
        if shown and _replaces(event, shown[-1]):
            shown[-1] = event
        else:
            shown.append(event)
        if len(self._shown) > MOST_MESSAGES:
            del self._shown[next(iter(self._shown))]

    def events(self) -> list[Event]:
        """All of it, each message and call in one piece."""
        return [event for shown in self._shown.values() for event in _joined(shown)]


def _replaces(event: Event, last: Event) -> bool:
    """Whether it is a later state of a call that shows all there is to see."""
    if not isinstance(event, ToolCallChanged) or not isinstance(last, ToolCallChanged):
        return False
    return event.content is not None


def _joined(shown: list[Event]) -> Iterator[Event]:
    """The events of one message or call, neighbouring pieces of text as one."""
    for kind, run in groupby(shown, type):
        if kind is AgentText or kind is AgentThought:
            pieces = [event for event in run if isinstance(event, Text)]
            yield replace(pieces[0], text="".join(piece.text for piece in pieces))
        else:
            yield from run
