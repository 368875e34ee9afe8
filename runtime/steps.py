"""Writes a turn's steps under their keys, each durable before its effect is used; knows no meaning."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from runtime.stored import UNCHANGED, HeadChange, Store, StoredEntry
from schemas.transcript import (
    AttemptStep,
    EndStep,
    PartialStep,
    PromptStep,
    ReplyStep,
    RuntimeStep,
    SessionState,
    Step,
    ToolStep,
    TrimStep,
)

PATIENCE = 1.0
"""Seconds that a commit may hold up a cancellation."""


@dataclass(slots=True)
class Recorder:
    """The steps of one turn. Keys: `turn:<turnId>` and below it, as a replay will look them up."""

    store: Store
    session_id: str
    turn_id: str
    counts: dict[str, int] = field(default_factory=dict)
    held: list[tuple[str, Step]] = field(default_factory=list)

    @property
    def _base(self) -> str:
        """The key all of this turn's keys begin with."""
        return f"turn:{self.turn_id}"

    def _numbered(self, prefix: str) -> str:
        """The next free `<prefix>:K`, K from 1."""
        self.counts[prefix] = self.counts.get(prefix, 0) + 1
        return f"{prefix}:{self.counts[prefix]}"

    def prompt(self, step: PromptStep) -> None:
        """The user's prompt: committed with the next step, or by `flush` before the model is asked."""
        self.held.append((f"{self._base}:prompt", step))

    async def flush(self) -> None:
        """Commit what is held."""
        if self.held:
            await self._append()

    async def partial(self, step: PartialStep) -> None:
        """Text that has been shown so far and belongs to no reply yet."""
        await self._append((self._numbered(f"{self._base}:iter:{step.iteration}:partial"), step))

    async def reply(self, step: ReplyStep) -> None:
        """The model's reply, before tools run that change something."""
        await self._append(self.reply_entry(step))

    def hold_reply(self, step: ReplyStep) -> None:
        """A reply whose tools only look: committed with the first result, or by `flush`."""
        self.held.append(self.reply_entry(step))

    async def tool(self, step: ToolStep) -> None:
        """A tool's result, before the model or the client sees that it is final."""
        await self._append(self.tool_entry(step))

    async def runtime(self, iteration: int, step: RuntimeStep) -> None:
        """A row that the loop put in."""
        await self._append((self._numbered(f"{self._base}:iter:{iteration}:runtime"), step))

    async def attempt(self, iteration: int, step: AttemptStep) -> None:
        """A request that was refused or failed."""
        await self._append((self._numbered(f"{self._base}:iter:{iteration}:attempt"), step))

    async def trim(self, iteration: int, step: TrimStep, state: SessionState) -> None:
        """A trim and the cut it leaves, in one commit."""
        key = self._numbered(f"{self._base}:iter:{iteration}:trim")
        await self._append((key, step), head=HeadChange(state=state.model_dump_json()))

    async def end(self, step: EndStep, before: Sequence[tuple[str, Step]], head: HeadChange) -> None:
        """The turn's end with what was still open and the session's new head, in one commit."""
        await self._append(*before, (f"{self._base}:end", step), head=head)

    def reply_entry(self, step: ReplyStep) -> tuple[str, Step]:
        """A reply with its key, to be committed together with the end."""
        return f"{self._base}:iter:{step.iteration}", step

    def tool_entry(self, step: ToolStep) -> tuple[str, Step]:
        """A tool result with its key."""
        return f"{self._base}:iter:{step.iteration}:tool:{step.call_id}", step

    async def _append(self, *steps: tuple[str, Step], head: HeadChange = UNCHANGED) -> None:
        """Commit, what is held first. A cancellation waits a moment for it, and loses nothing if it can't."""
        mine, self.held = [*self.held, *steps], []
        entries = [
            StoredEntry(self.turn_id, key, getattr(step, "kind", ""), step.model_dump_json().encode())
            for key, step in mine
        ]
        try:
            with trio.move_on_after(PATIENCE, shield=True) as scope:
                await self.store.append(self.session_id, entries, head=head)
            if scope.cancelled_caught:
                # Keys that were stored meanwhile are left as they are, so asking again is harmless.
                await self.store.append(self.session_id, entries, head=head)
        except BaseException:
            self.held = mine + self.held
            raise
