"""A reply while it streams: what has come, what is shown, what is already saved. Knows no provider."""

from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.history.rows.calls_in_text import TagFilter, prompt_mode_calls
from runtime.values.model import (
    CallPart,
    CallStartPart,
    Part,
    ReasoningPart,
    StopPart,
    TextPart,
    ThoughtPart,
    UsagePart,
)
from runtime.values.rows import ToolCall
from runtime.values.texts import mended
from schemas.transcript import CallRecord, PartialStep, ReplyStep, RequestRecord, UsageRecord


@dataclass(slots=True)
class Message:
    """A message that grows. Its id is made with its first piece; `saved` pieces are written already."""

    new_id: Callable[[], str]
    id: str = ""
    pieces: list[str] = field(default_factory=list)
    saved: int = 0

    def add(self, text: str) -> str:
        """Keep a piece; returns the message's id."""
        self.id = self.id or self.new_id()
        self.pieces.append(text)
        return self.id

    def text(self) -> str:
        """The whole."""
        return "".join(self.pieces)

    def unsaved(self) -> str:
        """What came since the last call."""
        text = "".join(self.pieces[self.saved :])
        self.saved = len(self.pieces)
        return text


class Draft:
    """One provider call's answer in the making. new_id: ids for messages; call_id(n): for the n-th call.

    shown: hides calls that the model writes into its text (prompt mode); None with native calls.
    """

    def __init__(
        self,
        iteration: int,
        new_id: Callable[[], str],
        call_id: Callable[[int], str],
        shown: TagFilter | None = None,
    ) -> None:
        self.iteration = iteration
        self.call_id = call_id
        self.shown = shown
        self.answer = Message(new_id)
        self.thought = Message(new_id)
        self.calls: list[CallRecord] = []
        self.usage: UsageRecord | None = None
        self.reasoning = ""
        self.stop = ""
        self.request: Callable[[], RequestRecord] | None = None

    def add_text(self, text: str) -> str:
        """Keep a piece of the answer; returns what of it can be shown."""
        self.answer.add(text)
        return text if self.shown is None else self.shown.feed(text)

    def written_calls(self) -> list[ToolCall]:
        """The calls that stand in the text of a whole reply, in prompt mode."""
        if self.shown is None:
            return []
        return [ToolCall("", found.name, found.arguments) for found in prompt_mode_calls(self.answer.text())]

    def add_call(self, call: ToolCall) -> CallRecord:
        """Keep a complete call under an id of ours, which is sent back where the provider's is of no use."""
        ours = self.call_id(len(self.calls))
        theirs = mended(call.id)
        named = theirs and all(theirs != other.id for other in self.calls)
        record = CallRecord(
            call_id=ours,
            id=theirs if named else ours,
            name=mended(call.name),
            arguments=mended(call.arguments),
        )
        self.calls.append(record)
        return record

    def note(self, part: Part) -> None:
        """Take in a part that shows nothing."""
        match part:
            case UsagePart(input_tokens, output_tokens, cached_tokens, cache_write_tokens):
                self.usage = UsageRecord(
                    input_tokens=input_tokens,
                    output_tokens=output_tokens,
                    cached_tokens=cached_tokens,
                    cache_write_tokens=cache_write_tokens,
                )
            case ReasoningPart(payload):
                self.reasoning = payload
            case StopPart(reason):
                self.stop = reason
            case TextPart() | ThoughtPart() | CallStartPart() | CallPart():
                pass

    @property
    def empty(self) -> bool:
        """Whether nothing has been shown."""
        return not (self.answer.pieces or self.thought.pieces or self.calls)

    def unsaved(self) -> PartialStep | None:
        """What was shown since the last save, as a step; None when there is nothing new."""
        text, thought = self.answer.unsaved(), self.thought.unsaved()
        if not text and not thought:
            return None
        return PartialStep(
            iteration=self.iteration,
            message_id=self.answer.id,
            text=text,
            thought_id=self.thought.id,
            thought=thought,
            prompt_mode=self.shown is not None,
        )

    def reply(self, *, interrupted: bool = False) -> ReplyStep:
        """The whole as a step."""
        return ReplyStep(
            iteration=self.iteration,
            message_id=self.answer.id,
            text=self.answer.text(),
            thought_id=self.thought.id,
            thought=self.thought.text(),
            calls=tuple(self.calls),
            usage=self.usage,
            stop=self.stop or "end",
            interrupted=interrupted,
            prompt_mode=self.shown is not None,
            reasoning=self.reasoning,
            request=None if self.request is None else self.request(),
        )
