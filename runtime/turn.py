"""One turn: compose, ask, run tools, repeat; each step recorded before its effect is used.

Knows no protocol and no provider. What the model may see is decided by the conversation; this file only
drives. Whatever ends `run`, `runtime.settle` leaves a transcript that the next prompt can build on.
"""

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import StrEnum

import trio

from runtime.conversation import Conversation
from runtime.draft import Draft
from runtime.errors import ProviderError
from runtime.events import AgentText, AgentThought
from runtime.history.overflow import is_context_overflow
from runtime.history.turns import History
from runtime.marks import LIMIT_LINE, LIMIT_PROMPT
from runtime.ports import CallPart, ModelRequest, Part, TextPart, ThoughtPart
from runtime.record import Iteration
from runtime.restore import iteration_rows
from runtime.rows import Row, ToolSpec
from runtime.steps import Recorder
from runtime.toolrun import ToolRun
from schemas.transcript import AttemptStep, PromptStep, ReplyStep, RuntimeStep

SAVE_SECONDS = 0.25
"""Streamed text is written at least this often: `kill -9` loses no more of it."""

STOP_REASONS: Mapping[str, str] = {
    "end": "end_turn",
    "tool_calls": "end_turn",
    "length": "max_tokens",
    "refusal": "refusal",
}
"""The provider's reason -> ACP's."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the user sent: the row's text for the model, and the content blocks as they came."""

    text: str
    blocks: tuple[dict[str, object], ...]


class Stage(StrEnum):
    """How far a turn came, as far as its end is concerned."""

    NEW = "not recorded yet"
    LOCAL = "answered without the model"
    ASKED = "the model has seen the prompt"
    ANSWERED = "answered"


def new_id() -> str:
    """An opaque id: 16 hex digits."""
    return os.urandom(8).hex()


class Turn:
    """One prompt's work. `run` may be cancelled anywhere; the caller then settles it, shielded."""

    def __init__(self, talk: Conversation, prompt: Prompt) -> None:
        self.talk = talk
        self.prompt = prompt
        self.recorder = Recorder(talk.store, talk.session_id, new_id())
        self.tools = ToolRun(
            talk.setup.tools,
            talk.tool_context,
            self.recorder,
            talk.emit,
            talk.setup.profile.max_tool_result_chars,
        )
        self.stage = Stage.NEW
        self.stop_reason = "end_turn"
        self.number = 0
        self.current = Iteration()
        self.draft: Draft | None = None
        self.told = ""
        self.before: History | None = None

    async def run(self) -> None:
        """From the prompt to the last reply. Raises WholeturnError; the caller settles either way."""
        await self.talk.show_pending()
        await self.recorder.prompt(
            PromptStep(message_id=new_id(), text=self.prompt.text, blocks=self.prompt.blocks)
        )
        answer = await self.talk.local_answer(self.prompt.text)
        if answer is not None:
            self.told, self.stage = answer, Stage.LOCAL
            return
        self.before = copy(self.talk.history)
        self.talk.history.open_turn(self.recorder.turn_id, Row("user", self.prompt.text))
        self.stage = Stage.ASKED
        await self._rounds()
        self.stage = Stage.ANSWERED

    async def _rounds(self) -> None:
        """Ask until the model answers without calls, or the limit of tool rounds is reached."""
        limit = self.talk.setup.profile.max_tool_iterations
        for self.number in range(limit):
            reply = await self._ask(self.talk.tool_specs)
            if not reply.calls:
                self.stop_reason = STOP_REASONS.get(reply.stop, "end_turn")
                return
            await self._run_tools(reply)
        self.number = limit
        await self._ask_last(limit)

    async def _ask_last(self, limit: int) -> None:
        """The limit is reached: one more call, without tools, for the best answer so far."""
        step = RuntimeStep(text=LIMIT_PROMPT)
        await self.recorder.runtime(self.number, step)
        self.current.runtime.append(step)
        self.talk.history.append([Row("user", LIMIT_PROMPT, origin="runtime")])
        reply = await self._ask(())
        self.stop_reason = "max_turn_requests"
        line = LIMIT_LINE.format(limit=limit)
        self.told = f"\n\n{line}" if reply.text else line

    async def _ask(self, specs: Sequence[ToolSpec]) -> ReplyStep:
        """One accepted reply. An overflow shrinks the request and asks again, as long as that helps."""
        composed = await self.talk.compose(specs, self.recorder, self.number)
        while True:
            request = ModelRequest(
                self.talk.route.model, composed.segments, tuple(specs), composed.max_output_tokens
            )
            try:
                return await self._stream(request)
            except ProviderError as error:
                await self.recorder.attempt(self.number, AttemptStep(error=error.message))
                shown = self.draft is not None and not self.draft.empty
                if shown or not is_context_overflow(error):
                    raise
                composed = await self.talk.recover(error, composed, specs, self.recorder, self.number)

    async def _stream(self, request: ModelRequest) -> ReplyStep:
        """Send the request and show the answer as it comes."""
        draft = self.draft = Draft(self.number, new_id, self._call_id)
        provider = await self.talk.setup.provider()
        saved = trio.current_time()
        async with provider.stream(request) as batches:
            async for batch in batches:
                for part in batch:
                    await self._show(draft, part)
                if trio.current_time() - saved > SAVE_SECONDS:
                    await self._save(draft)
                    saved = trio.current_time()
        reply = draft.reply()
        await self._accept(reply)
        return reply

    async def _show(self, draft: Draft, part: Part) -> None:
        match part:
            case TextPart(text):
                await self.talk.emit(AgentText(draft.add_text(text), text))
            case ThoughtPart(text):
                await self.talk.emit(AgentThought(draft.add_thought(text), text))
            case CallPart():
                await self.tools.announce(draft.add_call(part.call))
            case _:
                draft.note(part)

    async def _save(self, draft: Draft) -> None:
        step = draft.unsaved()
        if step is not None:
            await self.recorder.partial(step)

    async def _accept(self, reply: ReplyStep) -> None:
        """A whole reply: durable before its tools run; a last one is committed with the turn's end."""
        self.current.reply = reply
        self.draft = None
        if reply.calls:
            await self.recorder.reply(reply)
        await self.talk.count_usage(reply)

    async def _run_tools(self, reply: ReplyStep) -> None:
        """Run the calls; the history gets the reply and all its results in one piece."""
        await self.tools.run_all(self.number, reply.calls, self.current.tools)
        self.close_iteration()

    def close_iteration(self) -> None:
        """Hand the finished round over to the history."""
        # Runtime rows went in when they were made: the request had to carry them.
        done, self.current = self.current, Iteration()
        done.runtime.clear()
        self.talk.history.append(list(iteration_rows(done, "")))

    def _call_id(self, index: int) -> str:
        return f"call_{self.recorder.turn_id}_{self.number}_{index}"
