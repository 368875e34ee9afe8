"""Runs the calls of one reply and records each result before anyone sees it. Knows no tool by name."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import orjson
import trio

from runtime.conversation.conversation import Conversation
from runtime.permission.ask_person import Ends
from runtime.ports import Tool, ToolContext, ToolOutcome, ToolProgress, ToolRequest, ToolView
from runtime.transcript.recorder import Recorder
from runtime.transcript.restore import arguments_object, shown_diffs
from runtime.values.errors import ToolError
from runtime.values.events import ToolCallChanged, ToolCallStarted, ToolKind
from runtime.values.texts import BUG_IN_TOOL, CANCELLED_RESULT, NOT_RUN_RESULT, UNKNOWN_TOOL, UNREADABLE_CALL
from schemas.base import is_shallow
from schemas.transcript import CallRecord, DiffRecord, GuardrailStep, ToolStep

PARALLEL = 8
"""Calls of one reply that run at the same time."""

LOOKING = ("read", "search", "think")
"""Kinds of tools that change nothing: to run one again after a crash does no harm."""

log = logging.getLogger("wholeturn.tools")


async def reached(event: trio.Event) -> None:
    """Wait for it, without a turn of the loop when it is there already."""
    if not event.is_set():
        await event.wait()


@asynccontextmanager
async def one_of(slots: trio.Semaphore) -> AsyncIterator[None]:
    """One of the slots, without a turn of the loop when one is free."""
    await trio.lowlevel.checkpoint_if_cancelled()
    try:
        slots.acquire_nowait()
    except trio.WouldBlock:
        await slots.acquire()
    try:
        yield
    finally:
        slots.release()


@dataclass(slots=True, eq=False)
class Run:
    """A call as the client was told of it, and how far it came.

    started: it may have had effects. accepted: the reply that it stands in is whole and held or stored, so
    its result may be kept. asked: it needs no permission any more, or its question stands in the queue.
    step: the result as it is recorded, None until it is known.
    """

    call: CallRecord
    seen: ToolCallStarted
    begun: bool = False
    started: bool = False
    shown: bool = False
    asked: trio.Event = field(default_factory=trio.Event)
    accepted: trio.Event = field(default_factory=trio.Event)
    known: trio.Event = field(default_factory=trio.Event)
    step: ToolStep | None = None
    terminal_id: str = ""


class ToolRun:
    """The calls of one turn: announced, allowed, started, done. nursery: the turn's, while it runs.

    ends: why the turn is to end, as soon as a person's answer says so.
    """

    def __init__(self, talk: Conversation, recorder: Recorder) -> None:
        self.nursery: trio.Nursery | None = None
        self.ends: Ends = ""
        self._talk = talk
        self._recorder = recorder
        self._runs: dict[str, Run] = {}
        self._slots = trio.Semaphore(PARALLEL)
        self._last_begun: Run | None = None

    @property
    def _tools(self) -> Mapping[str, Tool]:
        return self._talk.setup.tools

    async def announce(self, iteration: int, call: CallRecord) -> None:
        """Show a call as soon as the model has named it whole. One that only looks begins at once."""
        raw = arguments_object(call.arguments)
        tool = self._tools.get(call.name)
        view = ToolView(call.name) if tool is None else tool.view(raw, self._talk.tool_context)
        kind: ToolKind = "other" if tool is None else tool.kind
        seen = ToolCallStarted(call.call_id, call.name, view.title, kind, raw, view.locations, "pending")
        run = self._runs[call.call_id] = Run(call, seen)
        await self._talk.emit(seen)
        if kind in LOOKING:
            self._begin(iteration, run)

    async def run_all(self, iteration: int, calls: Sequence[CallRecord], into: dict[str, ToolStep]) -> None:
        """Run the calls of a whole reply side by side; `into` gets their results.

        Those are on their way to the store, not yet there: `Recorder.flush` waits until they are.
        """
        runs = [self._runs[call.call_id] for call in calls]
        for run in runs:
            run.accepted.set()
            if not run.begun:
                self._begin(iteration, run)
        for run in runs:
            await reached(run.known)
            if run.step is not None:
                into[run.call.call_id] = run.step

    def only_look(self, calls: Sequence[CallRecord]) -> bool:
        """Whether none of the calls can change anything."""
        return all(call.name not in self._tools or self._tools[call.name].kind in LOOKING for call in calls)

    def _begin(self, iteration: int, run: Run) -> None:
        assert self.nursery is not None, "calls come while the turn runs"
        run.begun = True
        before, self._last_begun = self._last_begun, run
        self.nursery.start_soon(self._run_one, iteration, run, before)

    async def _run_one(self, iteration: int, run: Run, before: Run | None) -> None:
        try:
            step = self._step(iteration, run, await self._outcome(iteration, run, before))
            if before is not None:
                # Also a call that failed at once keeps its place: who comes behind it waits for it alone.
                await before.asked.wait()
        finally:
            run.asked.set()
        await reached(run.accepted)
        self._recorder.hold(step)
        run.step = step
        run.known.set()
        await self._recorder.flush()
        await self.show_end(run)

    async def _outcome(self, iteration: int, run: Run, before: Run | None) -> ToolOutcome:
        """Whatever a tool does, the model gets a result: an answer, or what went wrong."""
        try:
            tool, arguments = self._resolve(run.call)
            request = await tool.request(arguments, self._talk.tool_context)
            if before is not None:
                # Tasks that wait are started in any order; people are asked in the model's.
                await before.asked.wait()
            run.asked.set()
            refusal, note = await self._permission(iteration, run, request)
            if refusal:
                return ToolOutcome(refusal, failed=True)
            outcome = await self._work(run, tool, arguments, request)
            return replace(outcome, text=f"{outcome.text}\n{note}") if note else outcome
        except ToolError as error:
            return ToolOutcome(error.message, failed=True)
        except Exception:
            log.exception("tool %s failed", run.call.name)
            return ToolOutcome(BUG_IN_TOOL, failed=True)

    async def _permission(self, iteration: int, run: Run, request: ToolRequest) -> tuple[str, str]:
        """Why the call may not run ('': it may), and what the model is to hear with its result."""
        decision = await self._talk.approver.approve(run.seen, request)
        if decision.asked:
            answer = "allowed" if decision.allowed else decision.why
            step = GuardrailStep(call_id=run.call.call_id, allowed=decision.allowed, answer=answer)
            await self._recorder.guardrail(iteration, step)
        if decision.ends and not self.ends:
            self.ends = decision.ends
            if decision.ends == "cancelled" and self.nursery is not None:
                self.nursery.cancel_scope.cancel()
        return ("" if decision.allowed else decision.why), decision.note

    async def _work(
        self, run: Run, tool: Tool, arguments: Mapping[str, object], request: ToolRequest
    ) -> ToolOutcome:
        async with one_of(self._slots):
            await self._talk.emit(ToolCallChanged(run.call.call_id, "in_progress"))
            # Behind the first place where a cancel is noticed: until then nothing was run.
            run.started = True
            return await tool.run(arguments, self._context(run, request))

    def _context(self, run: Run, request: ToolRequest) -> ToolContext:
        async def show(progress: ToolProgress) -> None:
            await self._talk.emit(
                ToolCallChanged(
                    run.call.call_id, "in_progress", progress.text, progress.diffs, progress.terminal_id
                )
            )

        granted = request.paths if request.outside else ()
        return replace(self._talk.tool_context, progress=show, granted=granted, judged=request.paths)

    async def show_ends(self) -> None:
        """Tell the final state of every call whose result is known. They must be durable."""
        for run in self._runs.values():
            await self.show_end(run)

    async def show_end(self, run: Run) -> None:
        """Tell the final state of a call once it is known, and once only."""
        step = run.step
        if step is None or run.shown:
            return
        run.shown = True
        # A terminal of the client goes on showing what stands in it.
        text = None if run.terminal_id else step.shown or step.text
        try:
            await self._talk.emit(ToolCallChanged(step.call_id, step.status, text, shown_diffs(step)))
        except BaseException:
            # A cancellation that came while the client was far behind: the turn's end tells it.
            run.shown = False
            raise

    def _resolve(self, call: CallRecord) -> tuple[Tool, Mapping[str, object]]:
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolError(UNKNOWN_TOOL.format(name=call.name, names=", ".join(sorted(self._tools))))
        try:
            arguments = orjson.loads(call.arguments or "{}")
        except ValueError as error:
            raise ToolError(UNREADABLE_CALL.format(why=error)) from None
        if not isinstance(arguments, dict):
            raise ToolError(UNREADABLE_CALL.format(why="the arguments are not a JSON object"))
        if not is_shallow(arguments):
            raise ToolError(UNREADABLE_CALL.format(why="the arguments are nested too deeply"))
        return tool, arguments

    def _step(self, iteration: int, run: Run, outcome: ToolOutcome) -> ToolStep:
        """A result as it is recorded."""
        run.terminal_id = outcome.terminal_id
        return ToolStep(
            iteration=iteration,
            call_id=run.call.call_id,
            status="failed" if outcome.failed else "completed",
            text=outcome.text,
            limit=self._talk.setup.profile.max_tool_result_chars,
            shown=outcome.shown,
            title=run.seen.title,
            tool_kind=run.seen.kind,
            locations=tuple((place.path, place.line) for place in run.seen.locations),
            diffs=tuple(
                DiffRecord(path=diff.path, old_text=diff.old_text, new_text=diff.new_text)
                for diff in outcome.diffs
            ),
            raw_input=dict(run.seen.raw_input),
        )

    def result(self, iteration: int, call: CallRecord, missing: str | None) -> ToolStep:
        """The step of a call when the turn ends: its result if that is known, else what stands for one.

        missing: the text to use then, None: it was cancelled.
        """
        run = self._runs[call.call_id]
        if run.step is None:
            text = missing or (CANCELLED_RESULT if run.started else NOT_RUN_RESULT)
            run.step = self._step(iteration, run, ToolOutcome(text, failed=True))
        return run.step
