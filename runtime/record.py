"""Folds stored entries into one record a turn, a page at a time: memory does not grow with the session.

Knows neither the model's rows nor the client's updates: `restore` and `replay` make those from a record.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from runtime.stored import Store, StoredEntry
from schemas.transcript import (
    ANY_STEP,
    EndStep,
    PartialStep,
    PromptStep,
    ReplyStep,
    RuntimeStep,
    ToolStep,
)

PAGE = 500
"""Entries read from the store at once."""


@dataclass(slots=True)
class Iteration:
    """One provider call of a turn: its reply (or what was shown of one) and its tools' results by call id."""

    reply: ReplyStep | None = None
    partials: list[PartialStep] = field(default_factory=list)
    tools: dict[str, ToolStep] = field(default_factory=dict)
    runtime: list[RuntimeStep] = field(default_factory=list)

    def shown(self) -> ReplyStep | None:
        """The reply, or one put together from the partial texts of a reply that never came."""
        if self.reply is not None or not self.partials:
            return self.reply
        return ReplyStep(
            iteration=self.partials[0].iteration,
            message_id=next((p.message_id for p in self.partials if p.message_id), ""),
            text="".join(p.text for p in self.partials),
            thought_id=next((p.thought_id for p in self.partials if p.thought_id), ""),
            thought="".join(p.thought for p in self.partials),
            interrupted=True,
            prompt_mode=self.partials[0].prompt_mode,
        )


@dataclass(slots=True)
class TurnRecord:
    """A turn as recorded. `end` is None when the process died in it. first_seq: its first entry."""

    turn_id: str
    first_seq: int
    prompt: PromptStep | None = None
    iterations: list[Iteration] = field(default_factory=list)
    end: EndStep | None = None

    def at(self, iteration: int) -> Iteration:
        """The iteration with that number, from 0, made when it is new."""
        while len(self.iterations) <= iteration:
            self.iterations.append(Iteration())
        return self.iterations[iteration]

    def add(self, entry: StoredEntry) -> None:
        """Take in one entry. What is unreadable or of an unknown kind is passed over: a later version's."""
        try:
            step = ANY_STEP.validate_json(entry.payload)
        except ValueError:
            return
        match step:
            case PromptStep():
                self.prompt = step
            case PartialStep():
                self.at(step.iteration).partials.append(step)
            case ReplyStep():
                self.at(step.iteration).reply = step
            case ToolStep():
                self.at(step.iteration).tools[step.call_id] = step
            case RuntimeStep():
                self.at(iteration_of(entry.key)).runtime.append(step)
            case EndStep():
                self.end = step
            case _:
                pass


def iteration_of(key: str) -> int:
    """The N of `turn:<id>:iter:N:…`; 0 when the key names none."""
    parts = key.split(":")
    number = parts[3] if len(parts) > 3 and parts[2] == "iter" else "0"
    return int(number) if number.isdigit() else 0


def fold(records: list[TurnRecord], entries: Sequence[StoredEntry]) -> list[TurnRecord]:
    """Take entries in; returns the turns that are complete, leaving the last one in `records`."""
    for entry in entries:
        if not records or records[-1].turn_id != entry.turn_id:
            records.append(TurnRecord(entry.turn_id, entry.seq))
        records[-1].add(entry)
    done = records[:-1]
    del records[:-1]
    return done


async def read_turns(store: Store, session_id: str, *, after: int = 0) -> AsyncGenerator[TurnRecord, None]:
    """All turns from the entry behind `after`, in order. Close it (aclosing) when it is left early."""
    records: list[TurnRecord] = []
    while page := await store.entries(session_id, after=after, limit=PAGE):
        after = page[-1].seq
        for record in fold(records, page):
            yield record
    for record in records:
        yield record
