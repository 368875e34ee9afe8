"""Where a session stands on one connection, as ACP v2 tells it: idle, running, or waiting for a person.

Pure; knows no wire. Fed with the events that go out, in their order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from runtime.events import (
    AgentText,
    AgentThought,
    Event,
    ToolCallChanged,
    ToolCallStarted,
    UsageChanged,
)

State = Literal["idle", "running", "requires_action"]

NO_MESSAGE = ("", "")


@dataclass(slots=True)
class Standing:
    """One session's foreground work. told: the state that the client knows.

    questions: permissions that are waited for, or were when the turn was stopped. forms: the same of what
    running tool calls ask. streaming: a reply is coming in. calls: that run. replaying: what goes out is the
    past. opened: kind and id of the message that was begun last.
    """

    active: bool = False
    told: State = "idle"
    questions: int = 0
    forms: int = 0
    streaming: bool = False
    calls: set[str] = field(default_factory=set)
    replaying: bool = False
    opened: tuple[str, str] = NO_MESSAGE

    @property
    def state(self) -> State:
        """As it is now: `requires_action` only where nothing goes on beside the questions."""
        if not self.active:
            return "idle"
        waiting = self.questions or self.forms
        goes_on = self.streaming or len(self.calls) > self.forms
        return "requires_action" if waiting and not goes_on else "running"

    def note(self, event: Event) -> None:
        """Take in what happens."""
        if self.replaying:
            return
        match event:
            case AgentText() | AgentThought() | ToolCallStarted():
                self.streaming = True
            case UsageChanged():
                # It closes every reply.
                self.streaming = False
            case ToolCallChanged(call_id, "in_progress"):
                self.calls.add(call_id)
            case ToolCallChanged(call_id):
                self.calls.discard(call_id)
            case _:
                pass

    def begin(self) -> None:
        """Work begins."""
        self.active, self.streaming = True, False
        self.questions = self.forms = 0
        self.calls.clear()

    def begins_message(self, kind: str, message_id: str) -> bool:
        """Whether this piece is the first of its message."""
        fresh, self.opened = (kind, message_id) != self.opened, (kind, message_id)
        return fresh

    @contextmanager
    def replay(self) -> Iterator[None]:
        """Meanwhile what goes out is the past."""
        self.replaying, self.opened = True, NO_MESSAGE
        try:
            yield
        finally:
            self.replaying = False
