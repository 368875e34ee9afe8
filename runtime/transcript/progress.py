"""A turn that runs elsewhere, as its entries come in: the events that a person in front of it saw. Pure.

The maps from steps to events are those of `restore`; here is only what is new with each entry. Text comes in
the pieces in which it was recorded, a call when its result is there.
"""

from collections.abc import Iterator
from dataclasses import replace

from runtime.history.rows.notice import Reason
from runtime.transcript.restore import iteration_events
from runtime.transcript.turn_record import Iteration, TurnRecord, iteration_of
from runtime.values.events import (
    AgentText,
    AgentThought,
    Event,
    HistoryTrimmed,
    TokenSource,
    ToolCallStarted,
    TrimTokens,
    UserMessage,
)
from runtime.values.stored import StoredEntry
from schemas.transcript import ContextStep, TrimStep


class TurnProgress:
    """One turn, or what happened between two. Memory: its running round, never the whole of it."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self._record = TurnRecord(turn_id, 0)
        self._number = 0
        self._texts: dict[str, str] = {}
        self._called: set[str] = set()

    @property
    def ended(self) -> bool:
        """Whether its end was recorded. Trims that were made for the next turn may follow."""
        return self._record.end is not None

    def add(self, entry: StoredEntry) -> list[Event]:
        """What the entry adds to what is seen. Entries come in order."""
        self._record.add(entry)
        match entry.kind:
            case "prompt":
                return list(self._prompt())
            case "partial" | "reply" | "tool":
                return list(self._round(iteration_of(entry.key)))
            case "trim":
                return list(self._trim(iteration_of(entry.key)))
            case "context":
                return list(self._context(iteration_of(entry.key)))
            case "end":
                return list(self._end())
            case _:
                return []

    def _prompt(self) -> Iterator[Event]:
        prompt = self._record.prompt
        if prompt is not None:
            yield from (UserMessage(prompt.message_id, block) for block in prompt.blocks)

    def _round(self, number: int) -> Iterator[Event]:
        if number > self._number:
            self._begin(number)
        called = False
        for event in iteration_events(settled(self._record.at(number))):
            match event:
                case AgentText() | AgentThought():
                    called = False
                    yield from self._text(event)
                case ToolCallStarted():
                    called = event.call_id not in self._called
                    self._called.add(event.call_id)
                    if called:
                        yield event
                case _:  # the plan that a call set
                    if called:
                        yield event

    def _begin(self, number: int) -> None:
        """A new round: of those before it nothing is needed."""
        self._record.at(number)
        self._record.iterations[:number] = [Iteration() for _ in range(number)]
        self._number = number
        self._texts.clear()
        self._called.clear()

    def _text(self, event: AgentText | AgentThought) -> Iterator[Event]:
        shown = self._texts.get(event.message_id, "")
        self._texts[event.message_id] = event.text
        # A draft that was given up may be no beginning of what came in its place.
        new = event.text[len(shown) :] if event.text.startswith(shown) else event.text
        if new:
            yield replace(event, text=new)

    def _trim(self, number: int) -> Iterator[Event]:
        trims = self._record.trims_after if self.ended else self._record.at(number).trims
        yield from map(trim_event, trims[-1:])

    def _context(self, number: int) -> Iterator[Event]:
        passes = self._record.at(number).contexts
        yield from (pass_event(step) for step in passes[-1:] if step.trim_id)

    def _end(self) -> Iterator[Event]:
        end = self._record.end
        if end is not None and end.told:
            yield AgentText(end.told_id, end.told)


def settled(iteration: Iteration) -> Iteration:
    """The round without calls that have no result yet, and without text of which only a part can be shown."""
    reply = iteration.reply
    if reply is None:
        return Iteration() if any(part.prompt_mode for part in iteration.partials) else iteration
    calls = tuple(call for call in reply.calls if call.call_id in iteration.tools)
    return replace(iteration, reply=reply.model_copy(update={"calls": calls}))


def trim_event(step: TrimStep) -> HistoryTrimmed:
    """A recorded trim as it was told. The client's meter is not recorded: its fields are 0."""
    return HistoryTrimmed(
        dropped_messages=step.dropped_messages,
        dropped_turns=step.dropped_turns,
        kept_turns=step.kept_turns,
        reason=step.reason,
        strategy=step.strategy,
        trim_id=step.trim_id,
        tokens=tokens_of(step),
        note=step.note,
        summary=step.summary,
    )


def tokens_of(step: TrimStep) -> TrimTokens | None:
    """The figures of a trim; None for one by the count limit."""
    if step.token_budget is None or step.tokens_before is None or step.tokens_after is None:
        return None
    plain: TokenSource = "estimate" if step.calibration == 1.0 else "calibrated"
    return TrimTokens(
        step.token_budget,
        step.tokens_before,
        step.tokens_after,
        step.before_source or plain,
        step.after_source or plain,
    )


def pass_event(step: ContextStep) -> HistoryTrimmed:
    """A recorded pass of a context trimmer as it was told."""
    return HistoryTrimmed(
        dropped_messages=step.dropped_messages,
        dropped_turns=0,
        kept_turns=step.kept_turns,
        reason=(Reason.LOOP_SUMMARIZED if step.summary else Reason.LOOP_TRIMMED).value,
        strategy=step.strategy,
        trim_id=step.trim_id,
        summary=step.summary,
    )
