"""A reply while it streams: what has come, what is shown, what is already saved. Knows no provider."""

from collections.abc import Callable
from dataclasses import dataclass, field

from runtime.history.prompt_mode import prompt_mode_calls
from runtime.ports import CallPart, CallStartPart, Part, StopPart, TextPart, ThoughtPart, UsagePart
from runtime.prompt_tools import TagFilter
from runtime.rows import ToolCall
from schemas.transcript import CallRecord, PartialStep, ReplyStep, UsageRecord


@dataclass(slots=True)
class Draft:
    """One provider call's answer in the making. new_id: ids for messages; call_id(n): for the n-th call.

    shown: hides calls that the model writes into its text (prompt mode); None with native calls.
    """

    iteration: int
    new_id: Callable[[], str]
    call_id: Callable[[int], str]
    shown: TagFilter | None = None
    message_id: str = ""
    thought_id: str = ""
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    usage: UsagePart | None = None
    stop: str = ""
    saved: tuple[int, int] = (0, 0)

    def add_text(self, text: str) -> str:
        """Keep a piece of the answer; returns what of it can be shown, under `message_id`."""
        self.message_id = self.message_id or self.new_id()
        self.texts.append(text)
        return text if self.shown is None else self.shown.feed(text)

    def written_calls(self) -> list[ToolCall]:
        """The calls that stand in the text of a whole reply, in prompt mode."""
        if self.shown is None:
            return []
        return [ToolCall("", found.name, found.arguments) for found in prompt_mode_calls("".join(self.texts))]

    def add_thought(self, text: str) -> str:
        """Keep a piece of reasoning; returns its message id."""
        self.thought_id = self.thought_id or self.new_id()
        self.thoughts.append(text)
        return self.thought_id

    def add_call(self, call: ToolCall) -> CallRecord:
        """Keep a complete call under an id of ours. A provider that names none gets ours back."""
        ours = self.call_id(len(self.calls))
        record = CallRecord(call_id=ours, id=call.id or ours, name=call.name, arguments=call.arguments)
        self.calls.append(record)
        return record

    def note(self, part: Part) -> None:
        """Take in a part that shows nothing."""
        match part:
            case UsagePart():
                self.usage = part
            case StopPart(reason):
                self.stop = reason
            case TextPart() | ThoughtPart() | CallStartPart() | CallPart():
                pass

    @property
    def empty(self) -> bool:
        """Whether nothing has been shown."""
        return not (self.texts or self.thoughts or self.calls)

    def unsaved(self) -> PartialStep | None:
        """What was shown since the last save, as a step; None when there is nothing new."""
        texts, thoughts = self.saved
        text, thought = "".join(self.texts[texts:]), "".join(self.thoughts[thoughts:])
        if not text and not thought:
            return None
        self.saved = (len(self.texts), len(self.thoughts))
        return PartialStep(
            iteration=self.iteration,
            message_id=self.message_id,
            text=text,
            thought_id=self.thought_id,
            thought=thought,
            prompt_mode=self.shown is not None,
        )

    def reply(self, *, interrupted: bool = False) -> ReplyStep:
        """The whole as a step."""
        usage = self.usage
        return ReplyStep(
            iteration=self.iteration,
            message_id=self.message_id,
            text="".join(self.texts),
            thought_id=self.thought_id,
            thought="".join(self.thoughts),
            calls=tuple(self.calls),
            usage=None
            if usage is None
            else UsageRecord(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens,
            ),
            stop=self.stop or "end",
            interrupted=interrupted,
            prompt_mode=self.shown is not None,
        )
