"""Runs the calls of one reply and records each result before anyone sees it. Knows no tool by name."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson
import trio

from runtime.errors import ToolError
from runtime.events import Event, ToolCallChanged, ToolCallStarted, ToolKind
from runtime.marks import BUG_IN_TOOL, CANCELLED_RESULT, NOT_RUN_RESULT, UNKNOWN_TOOL, UNREADABLE_CALL
from runtime.ports import Tool, ToolContext, ToolOutcome, ToolView
from runtime.restore import arguments_object
from runtime.steps import Recorder
from schemas.nesting import is_shallow
from schemas.transcript import CallRecord, ToolStep

PARALLEL = 8
"""Calls of one reply that run at the same time."""

LOOKING = ("read", "search", "think")
"""Kinds of tools that change nothing: to run one again after a crash does no harm."""

log = logging.getLogger("wholeturn.tools")


@dataclass(frozen=True, slots=True)
class Announced:
    """A call as the client was told of it."""

    call: CallRecord
    view: ToolView
    kind: ToolKind
    raw_input: Mapping[str, object]


@dataclass(slots=True)
class ToolRun:
    """The calls of one turn: announced, started, done. limit: bytes of a result the model gets, 0 = all."""

    tools: Mapping[str, Tool]
    context: ToolContext
    recorder: Recorder
    emit: Callable[[Event], Awaitable[None]]
    limit: int
    announced: dict[str, Announced] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)

    async def announce(self, call: CallRecord) -> None:
        """Show a call as soon as the model has named it whole."""
        raw = arguments_object(call.arguments)
        tool = self.tools.get(call.name)
        view = ToolView(call.name) if tool is None else tool.view(raw, self.context)
        seen = Announced(call, view, "other" if tool is None else tool.kind, raw)
        self.announced[call.call_id] = seen
        await self.emit(
            ToolCallStarted(call.call_id, call.name, view.title, seen.kind, raw, view.locations, "pending")
        )

    async def run_all(self, iteration: int, calls: Sequence[CallRecord], into: dict[str, ToolStep]) -> None:
        """Run them side by side; `into` gets each result when it is durable."""
        slots = trio.Semaphore(PARALLEL)
        if len(calls) == 1:
            await slots.acquire()
            await self._run_one(iteration, calls[0], into, slots)
            return
        async with trio.open_nursery() as nursery:
            for call in calls:
                # Waits here, in the model's order: trio starts waiting tasks in any.
                await slots.acquire()
                nursery.start_soon(self._run_one, iteration, call, into, slots)

    def only_look(self, calls: Sequence[CallRecord]) -> bool:
        """Whether none of the calls can change anything."""
        return all(call.name not in self.tools or self.tools[call.name].kind in LOOKING for call in calls)

    async def _run_one(
        self, iteration: int, call: CallRecord, into: dict[str, ToolStep], slots: trio.Semaphore
    ) -> None:
        try:
            await self.emit(ToolCallChanged(call.call_id, "in_progress"))
            # Behind the first place where a cancel is noticed: until then nothing was run.
            self.started.add(call.call_id)
            outcome = await self._outcome(call)
            step = self.step(iteration, call, outcome)
            await self.recorder.tool(step)
            into[call.call_id] = step
            await self.show_end(step)
        finally:
            slots.release()

    async def show_end(self, step: ToolStep) -> None:
        """Tell the final state of a call, once."""
        if step.call_id in self.finished:
            return
        self.finished.add(step.call_id)
        await self.emit(ToolCallChanged(step.call_id, step.status, step.shown or step.text))

    async def _outcome(self, call: CallRecord) -> ToolOutcome:
        """Whatever a tool does, the model gets a result: an answer, or what went wrong."""
        try:
            tool, arguments = self._resolve(call)
            return await tool.run(arguments, self.context)
        except ToolError as error:
            return ToolOutcome(error.message, failed=True)
        except Exception:
            log.exception("tool %s failed", call.name)
            return ToolOutcome(BUG_IN_TOOL, failed=True)

    def _resolve(self, call: CallRecord) -> tuple[Tool, Mapping[str, object]]:
        tool = self.tools.get(call.name)
        if tool is None:
            raise ToolError(UNKNOWN_TOOL.format(name=call.name, names=", ".join(sorted(self.tools))))
        try:
            arguments = orjson.loads(call.arguments or "{}")
        except ValueError as error:
            raise ToolError(UNREADABLE_CALL.format(why=error)) from None
        if not isinstance(arguments, dict):
            raise ToolError(UNREADABLE_CALL.format(why="the arguments are not a JSON object"))
        if not is_shallow(arguments):
            raise ToolError(UNREADABLE_CALL.format(why="the arguments are nested too deeply"))
        return tool, arguments

    def step(self, iteration: int, call: CallRecord, outcome: ToolOutcome) -> ToolStep:
        """A result as it is recorded."""
        seen = self.announced[call.call_id]
        return ToolStep(
            iteration=iteration,
            call_id=call.call_id,
            status="failed" if outcome.failed else "completed",
            text=outcome.text,
            limit=self.limit,
            shown=outcome.shown,
            title=seen.view.title,
            tool_kind=seen.kind,
            locations=tuple((place.path, place.line) for place in seen.view.locations),
            raw_input=dict(seen.raw_input),
        )

    def broken_off(self, iteration: int, call: CallRecord, missing: str | None) -> ToolStep:
        """The step of a call that has no result. missing: the text to use, None: it was cancelled."""
        text = missing
        if text is None:
            text = CANCELLED_RESULT if call.call_id in self.started else NOT_RUN_RESULT
        return self.step(iteration, call, ToolOutcome(text, failed=True))
