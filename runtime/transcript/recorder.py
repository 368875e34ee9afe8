"""Writes a turn's steps under their keys, each durable before its effect is used; knows no meaning."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from runtime.values.stored import UNCHANGED, HeadChange, Store, StoredEntry
from schemas.transcript import (
    AttemptStep,
    ContextStep,
    EndStep,
    GoalStep,
    GuardrailStep,
    PartialStep,
    PromptStep,
    ReplyStep,
    RuntimeStep,
    SessionState,
    SetupStep,
    Step,
    ToolStep,
    TrimStep,
)

KeyedStep = PromptStep | SetupStep | ReplyStep | ToolStep
"""Steps whose key follows from themselves."""


@dataclass(slots=True)
class Recorder:
    """The steps of one turn. Keys: `turn:<turnId>` and below it, as a replay will look them up."""

    store: Store
    session_id: str
    turn_id: str
    counts: dict[str, int] = field(default_factory=dict)
    held: list[tuple[str, Step]] = field(default_factory=list)
    _turnstile: trio.Lock = field(default_factory=trio.Lock)

    @property
    def _base(self) -> str:
        """The key all of this turn's keys begin with."""
        return f"turn:{self.turn_id}"

    def _numbered(self, prefix: str) -> str:
        """The next free `<prefix>:K`, K from 1."""
        self.counts[prefix] = self.counts.get(prefix, 0) + 1
        return f"{prefix}:{self.counts[prefix]}"

    def hold(self, step: KeyedStep) -> None:
        """A step that is committed with the next one, or by `flush`.

        A prompt and a tool's result must be before the model sees them, a result before the client does. A
        reply whose tools only look may wait for their results.
        """
        self.held.append(self.entry(step))

    def entry(self, step: KeyedStep) -> tuple[str, Step]:
        """A step with its key, to be committed together with the end."""
        match step:
            case PromptStep():
                return f"{self._base}:prompt", step
            case SetupStep():  # what requests are composed under, once in a session for each change of it
                return f"setup:{step.digest}", step
            case ReplyStep():
                return f"{self._base}:iter:{step.iteration}", step
            case ToolStep():
                return f"{self._base}:iter:{step.iteration}:tool:{step.call_id}", step

    async def flush(self) -> None:
        """Commit what is held; on return everything given so far is durable, whoever commits it."""
        if self.held or self._turnstile.locked():
            await self._append()

    async def partial(self, step: PartialStep) -> None:
        """Text that has been shown so far and belongs to no reply yet."""
        await self._append((self._numbered(f"{self._base}:iter:{step.iteration}:partial"), step))

    async def reply(self, step: ReplyStep) -> None:
        """The model's reply, before tools run that change something."""
        await self._append(self.entry(step))

    async def guardrail(self, iteration: int, step: GuardrailStep) -> None:
        """A person's answer, before the call that it is about runs."""
        await self._append((f"{self._base}:iter:{iteration}:guardrail:{step.call_id}", step))

    async def runtime(self, iteration: int, step: RuntimeStep) -> None:
        """A row that the loop put in."""
        await self._append((self._numbered(f"{self._base}:iter:{iteration}:runtime"), step))

    async def attempt(self, iteration: int, step: AttemptStep) -> None:
        """A request that was refused or failed."""
        await self._append((self._numbered(f"{self._base}:iter:{iteration}:attempt"), step))

    async def context(self, step: ContextStep, *, told: bool) -> None:
        """A pass of a context trimmer. told: the client hears of it, so it is durable on return; else
        held.
        """
        base = f"{self._base}:iter:{step.iteration}:context"
        number = self.counts[base] = self.counts.get(base, 0) + 1
        keyed = (base if number == 1 else f"{base}:{number}"), step
        if told:
            await self._append(keyed)
        else:
            self.held.append(keyed)

    async def goal(self, step: GoalStep, state: SessionState) -> None:
        """A goal that was declared, with the state that has it, in one commit."""
        key = self._numbered(f"{self._base}:goal")
        await self._append((key, step), head=HeadChange(state=state.model_dump_json()))

    async def trim(self, iteration: int, step: TrimStep, state: SessionState) -> None:
        """A trim and the cut it leaves, in one commit."""
        key = self._numbered(f"{self._base}:iter:{iteration}:trim")
        await self._append((key, step), head=HeadChange(state=state.model_dump_json()))

    async def end(self, step: EndStep, before: Sequence[tuple[str, Step]], head: HeadChange) -> None:
        """The turn's end with what was still open and the session's new head, in one commit."""
        await self._append(*before, (f"{self._base}:end", step), head=head)

    async def _append(self, *steps: tuple[str, Step], head: HeadChange = UNCHANGED) -> None:
        """Commit, what is held first. The store says how long a cancellation waits for that; what it did not
        take then is held again, and goes with the end.
        """
        self.held.extend(steps)
        try:
            await self._commit(head)
        except BaseException:
            if head is not UNCHANGED:
                # Without the state that goes with it such a step would tell of what is not in force.
                self.held = [one for one in self.held if not any(one is step for step in steps)]
            raise

    async def _commit(self, head: HeadChange) -> None:
        """One at a time, in order: who waits for his turn finds his steps among those that were written."""
        try:
            self._turnstile.acquire_nowait()
        except trio.WouldBlock:
            await self._turnstile.acquire()
        mine, self.held = self.held, []
        try:
            if mine or head is not UNCHANGED:
                entries = [
                    StoredEntry(self.turn_id, key, getattr(step, "kind", ""), step.model_dump_json().encode())
                    for key, step in mine
                ]
                await self.store.append(self.session_id, entries, head=head)
        except BaseException:
            self.held = mine + self.held
            raise
        finally:
            self._turnstile.release()
