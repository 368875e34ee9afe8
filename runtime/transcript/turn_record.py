"""Folds stored entries into one record a turn, a page at a time: memory does not grow with the session.

Knows neither the model's rows nor the client's updates: `restore` and `runtime/replay/` make those from a
record.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from runtime.values.stored import Store, StoredEntry
from schemas.transcript import (
    ANY_STEP,
    KINDS,
    AnyStep,
    AttemptStep,
    ContextStep,
    EndStep,
    ExpandStep,
    GoalStep,
    PartialStep,
    PromptStep,
    ReplyStep,
    RuntimeStep,
    SetupStep,
    ToolStep,
    TrimStep,
)

PAGE = 500
"""Entries read from the store at once."""
FIRST_PAGE = 40
"""The same for the first page of turns: whoever waits for the first turn does not wait for all of a page."""


FARTHEST = 1000
"""Iterations that may be missing before a known one, in a transcript with holes; a larger number is none."""
MOST_ROUNDS = 100_000
"""Tool rounds that a turn may be said to have."""


@dataclass(slots=True)
class Iteration:
    """One provider call of a turn: its reply (or what was shown of one) and its tools' results by call id.

    attempts: requests that failed before the reply. trims: what left the history for this call. contexts:
    passes of a context trimmer.
    """

    reply: ReplyStep | None = None
    partials: list[PartialStep] = field(default_factory=list)
    tools: dict[str, ToolStep] = field(default_factory=dict)
    runtime: list[RuntimeStep] = field(default_factory=list)
    attempts: list[AttemptStep] = field(default_factory=list)
    trims: list[TrimStep] = field(default_factory=list)
    contexts: list[ContextStep] = field(default_factory=list)

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
class Aside:
    """What else a record says. goals: set in it. rounds_cut: as the last of its steps says that says it.
    unreadable: keys of damaged steps, as far as their kind is known here.
    """

    goals: list[GoalStep] = field(default_factory=list)
    rounds_cut: int | None = None
    unreadable: list[str] = field(default_factory=list)


@dataclass(slots=True)
class TurnRecord:
    """A turn as recorded. `end` is None when the process died in it. first_seq: its first entry.

    last_seq: its end, else its last entry. trims_after: made for the next turn, behind the end. What happened
    between turns is a record of its own without a prompt: the trims of a load, turns that came back.
    """

    turn_id: str
    first_seq: int
    prompt: PromptStep | None = None
    iterations: list[Iteration] = field(default_factory=list)
    end: EndStep | None = None
    last_seq: int = 0
    trims_after: list[TrimStep] = field(default_factory=list)
    expand: ExpandStep | None = None
    setups: list[SetupStep] = field(default_factory=list)
    aside: Aside = field(default_factory=Aside)

    def trims(self) -> list[TrimStep]:
        """The trims before the turn's end, in order."""
        return [trim for iteration in self.iterations for trim in iteration.trims]

    def at(self, iteration: int) -> Iteration:
        """The iteration with that number, from 0, made when it is new."""
        while len(self.iterations) <= iteration:
            self.iterations.append(Iteration())
        return self.iterations[iteration]

    def add(self, entry: StoredEntry) -> None:
        """Take in one entry. What is unreadable or of an unknown kind is passed over: a later version's."""
        if self.end is None:
            self.last_seq = entry.seq
        step = self._readable(entry)
        if isinstance(step, TrimStep | ContextStep) and step.rounds_cut is not None:
            self.aside.rounds_cut = step.rounds_cut
        match step:
            case PartialStep() | ReplyStep() | ToolStep() | ContextStep():
                self._add_to(self.at(step.iteration), step)
            case RuntimeStep() | AttemptStep() | TrimStep():
                self._add_beside(iteration_of(entry.key), step)
            case PromptStep():
                self.prompt = step
            case EndStep():
                self.end = step
            case SetupStep():
                self.setups.append(step)
            case GoalStep():
                self.aside.goals.append(step)
            case ExpandStep():
                self.expand = step
            case _:
                pass

    def _readable(self, entry: StoredEntry) -> AnyStep | None:
        try:
            step = ANY_STEP.validate_json(entry.payload)
        except ValueError:
            if entry.kind in KINDS:
                self.aside.unreadable.append(entry.key)
            return None
        near = 0 <= number_of(entry.key, step) <= len(self.iterations) + FARTHEST
        return step if near and is_sound(step) else None

    def _add_to(self, iteration: Iteration, step: PartialStep | ReplyStep | ToolStep | ContextStep) -> None:
        match step:
            case ContextStep():
                iteration.contexts.append(step)
            case PartialStep():
                iteration.partials.append(step)
            case ReplyStep():
                iteration.reply = step
            case ToolStep():
                iteration.tools[step.call_id] = step

    def _add_beside(self, number: int, step: RuntimeStep | AttemptStep | TrimStep) -> None:
        match step:
            case RuntimeStep():
                self.at(number).runtime.append(step)
            case AttemptStep():
                self.at(number).attempts.append(step)
            case TrimStep():
                (self.at(number).trims if self.end is None else self.trims_after).append(step)


def iteration_of(key: str) -> int:
    """The N of `turn:<id>:iter:N:…`; 0 when the key names none."""
    parts = key.split(":")
    number = parts[3] if len(parts) > 3 and parts[2] == "iter" else "0"
    return int(number) if len(number) < 10 and number.isdecimal() else 0


def number_of(key: str, step: AnyStep) -> int:
    """The iteration of a step: its own, else that of its key."""
    if isinstance(step, PartialStep | ReplyStep | ToolStep | ContextStep):
        return step.iteration
    return iteration_of(key)


def is_sound(step: AnyStep) -> bool:
    """Whether what a step says of a turn's rounds can be: a file from elsewhere may say anything."""
    if not isinstance(step, ContextStep):
        return True
    kept = all(0 <= first <= last < step.rounds for first, last in step.kept)
    outputs = all(0 <= number < step.rounds and place >= 0 for number, place, _ in step.outputs)
    return step.rounds <= MOST_ROUNDS and kept and outputs


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
    limit = FIRST_PAGE
    while page := await store.entries(session_id, after=after, limit=limit):
        after, limit = page[-1].seq, PAGE
        for record in fold(records, page):
            yield record
    for record in records:
        yield record
