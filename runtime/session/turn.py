"""One turn: ask, run tools, repeat; each step recorded before its effect is used.

Knows no protocol and no provider. What the model may see is decided by the conversation; this file only
drives. Whatever ends `run`, `finish_turn` leaves a transcript that the next prompt can build on.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, replace
from enum import StrEnum

import trio

from runtime.conversation.conversation import Conversation
from runtime.history.live.history import History
from runtime.history.rows.calls_in_text import parse_error, unreadable_calls, visible_text
from runtime.permission.ask_person import TOO_MANY
from runtime.session.model_call import Asking
from runtime.session.tool_calls import ToolRun
from runtime.transcript.recorder import Recorder
from runtime.transcript.restore import iteration_rows, prompt_row
from runtime.transcript.turn_record import Iteration
from runtime.trimming.model_context import declare_goal
from runtime.values.errors import find_error
from runtime.values.ids_and_time import new_id
from runtime.values.prompt import Prompt
from runtime.values.rows import Row
from runtime.values.texts import LIMIT_LINE, LIMIT_PROMPT, NO_ANSWER
from schemas.transcript import PromptStep, ReplyStep, RuntimeStep

SAVE_SECONDS = 0.25
"""What was shown is written at least this often: `kill -9` loses no more of it."""

STOP_REASONS: Mapping[str, str] = {
    "end": "end_turn",
    "tool_calls": "end_turn",
    "length": "max_tokens",
    "refusal": "refusal",
}
"""The provider's reason -> ACP's."""


class Stage(StrEnum):
    """How far a turn came, as far as its end is concerned."""

    NEW = "not recorded yet"
    LOCAL = "answered without the model"
    ASKED = "the model has seen the prompt"
    ANSWERED = "answered"


@dataclass(slots=True)
class Ending:
    """How a turn ends: its ACP stop reason, and last words that are shown but not the model's."""

    stop_reason: str = "end_turn"
    told: str = ""


class Turn:
    """One prompt's work. `run` may be cancelled anywhere; the caller then settles it, shielded."""

    def __init__(self, talk: Conversation, prompt: Prompt) -> None:
        self.talk = talk
        self.prompt = prompt
        self.recorder = Recorder(talk.store, talk.session_id, new_id())
        self.tools = ToolRun(talk, self.recorder)
        self.asking = Asking(talk, self.recorder, self.tools)
        self.stage = Stage.NEW
        self.ending = Ending()
        self.number = 0
        self.current = Iteration()
        self.before: History | None = None

    async def run(self) -> None:
        """From the prompt to the last reply. Raises WholeturnError; the caller settles either way."""
        await self.talk.show_pending()
        self.recorder.hold(PromptStep(message_id=new_id(), text=self.prompt.text, blocks=self.prompt.blocks))
        self.talk.notes.recorder = self.recorder
        answer = await self.talk.local_answer(self.prompt.text)
        if answer is not None:
            self.ending.told, self.stage = answer, Stage.LOCAL
            return
        self.before = copy(self.talk.keeper.history)
        if self.prompt.goal:
            await self._set_goal(self.prompt.goal)
        self.talk.tool_context = replace(self.talk.tool_context, set_goal=self._set_goal)
        opening = prompt_row(self.prompt.text, self.prompt.blocks)
        self.talk.keeper.history.open_turn(self.recorder.turn_id, opening)
        self.stage = Stage.ASKED
        self.talk.approver.begin_turn(self.talk.setup.profile.max_approvals)
        async with self._saving():
            await self._rounds()
        if self.tools.ends == "cancelled":
            self.ending.stop_reason = "cancelled"
            return
        self.stage = Stage.ANSWERED

    async def _set_goal(self, text: str) -> bool:
        """This turn defines the task from now on; by the id of the turn that it is part of."""
        keeper, turn_id = self.talk.keeper, self.recorder.turn_id
        if self.stage is Stage.ASKED and keeper.history.current is not None:
            turn_id = keeper.history.current.turn_id
        return await declare_goal(keeper, self.recorder, text, turn_id)

    @asynccontextmanager
    async def _saving(self) -> AsyncIterator[None]:
        """Meanwhile write what streams in and what is held, whether or not more of it comes."""
        try:
            async with trio.open_nursery() as nursery:
                self.tools.nursery = nursery
                nursery.start_soon(self._save)
                yield
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            error = find_error(group)
            if error is None:
                raise
            raise error from None

    async def _save(self) -> None:
        while True:
            await self.recorder.flush()
            await trio.sleep(SAVE_SECONDS)
            step = None if self.asking.draft is None else self.asking.draft.unsaved()
            if step is not None:
                await self.recorder.partial(step)

    async def _rounds(self) -> None:
        """Ask until the model answers without calls, or the limit of tool rounds is reached."""
        limit = self.talk.setup.profile.max_tool_iterations
        for self.number in range(limit):
            reply = await self._ask()
            if reply.calls:
                await self.tools.run_all(self.number, reply.calls, self.current.tools)
                self.close_iteration()
                if self.tools.ends:
                    await self.recorder.flush()
                    await self.tools.show_ends()
                    limit = self.talk.setup.profile.max_approvals
                    self.ending = Ending("max_turn_requests", TOO_MANY.format(limit=limit))
                    return
            elif bad := self._unreadable(reply):
                await self.recorder.reply(reply)
                self.close_iteration()
                await self._say_to_model(self.number + 1, parse_error(bad))
            else:
                self.ending.stop_reason = STOP_REASONS.get(reply.stop, "end_turn")
                self.ending.told = "" if says_something(reply) else NO_ANSWER
                return
        self.number = limit
        await self._ask_last(limit)

    async def _ask_last(self, limit: int) -> None:
        """The limit is reached: one more call, without tools, for the best answer so far."""
        await self._say_to_model(limit, LIMIT_PROMPT)
        reply = await self._ask(with_tools=False)
        self.ending.stop_reason = "max_turn_requests"
        line = LIMIT_LINE.format(limit=limit)
        self.ending.told = f"\n\n{line}" if reply.text else line

    async def _ask(self, *, with_tools: bool = True) -> ReplyStep:
        """A whole reply: durable before a tool changes anything.

        Where the tools only look, or there are none, it is committed together with what comes next: there is
        nothing that a crash in between could have done twice, and one commit a round is half the wait.
        """
        reply = await self.asking.reply(self.number, with_tools=with_tools)
        self.current.reply = reply
        if self.tools.only_look(reply.calls):
            self.recorder.hold(reply)
        else:
            await self.recorder.reply(reply)
        await self.talk.keeper.count_usage(reply)
        return reply

    async def _say_to_model(self, number: int, text: str) -> None:
        """A row of our own, in front of the turn's provider call `number`."""
        step = RuntimeStep(text=text)
        await self.recorder.runtime(number, step)
        self.talk.keeper.history.append([Row("user", text, origin="runtime")])

    def _unreadable(self, reply: ReplyStep) -> int:
        """How many calls in a prompt-mode reply could not be read."""
        return unreadable_calls(reply.text) if reply.prompt_mode else 0

    def close_iteration(self) -> None:
        """Hand the finished round over to the history, the reply and all its results in one piece."""
        done, self.current = self.current, Iteration()
        self.talk.keeper.history.append(list(iteration_rows(done, "")))


def says_something(reply: ReplyStep) -> bool:
    """Whether the person can see an answer, or hears by the stop reason that there is none."""
    text = visible_text(reply.text) if reply.prompt_mode else reply.text
    return reply.stop == "refusal" or bool(text.strip())
