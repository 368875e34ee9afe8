"""One accepted reply of the model: composed, asked for, shown as it streams, saved while it does.

Knows no tool's work and no turn's end. An overflow shrinks the request and asks again, as long as that helps.
"""

from functools import partial

from runtime.conversation import Conversation
from runtime.draft import Draft
from runtime.errors import ProviderError
from runtime.events import AgentText, AgentThought
from runtime.history.overflow import is_context_overflow
from runtime.ids import new_id
from runtime.model import (
    CallPart,
    ModelRequest,
    Part,
    TextPart,
    ThoughtPart,
)
from runtime.prompt_tools import TagFilter
from runtime.rows import ToolCall
from runtime.steps import Recorder
from runtime.toolrun import ToolRun
from schemas.transcript import AttemptStep, ReplyStep


class Asking:
    """The provider calls of one turn. `draft` is what a call has brought so far, until it is accepted."""

    def __init__(self, talk: Conversation, recorder: Recorder, tools: ToolRun) -> None:
        self.draft: Draft | None = None
        self._talk = talk
        self._recorder = recorder
        self._tools = tools

    async def reply(self, number: int, *, with_tools: bool = True) -> ReplyStep:
        """The reply of the turn's provider call `number`. Without tools, calls in it are not taken.

        Raises ProviderError, ContextWindowExceeded; `draft` then holds what was shown.
        """
        composed = await self._talk.keeper.compose(self._recorder, number, with_tools=with_tools)
        while True:
            specs = self._talk.keeper.native_specs if with_tools else ()
            request = ModelRequest(
                self._talk.keeper.route.model, composed.segments, specs, composed.max_output_tokens
            )
            try:
                return await self._stream(number, request, with_tools)
            except ProviderError as error:
                await self._recorder.attempt(number, AttemptStep(error=error.message))
                shown = self.draft is not None and not self.draft.empty
                if shown or not is_context_overflow(error):
                    raise
                composed = await self._talk.keeper.recover(
                    error, composed, self._recorder, number, with_tools=with_tools
                )

    async def _stream(self, number: int, request: ModelRequest, with_tools: bool) -> ReplyStep:
        in_text = self._talk.setup.prompt_tools
        ids = partial(call_id, f"call_{self._recorder.turn_id}_{number}")
        draft = Draft(number, new_id, ids, TagFilter() if in_text else None)
        self.draft = draft
        provider = await self._talk.setup.provider()
        await self._recorder.flush()
        async with provider.stream(request) as batches:
            async for batch in batches:
                for part in batch:
                    await self._show(draft, part, with_tools)
        if in_text:
            await self._show_rest(draft, with_tools)
        self.draft = None
        return draft.reply()

    async def _show(self, draft: Draft, part: Part, with_tools: bool) -> None:
        match part:
            case TextPart(text):
                await self._show_text(draft, draft.add_text(text))
            case ThoughtPart(text):
                await self._talk.emit(AgentThought(draft.thought.add(text), text))
            case CallPart(call=call):
                await self._take_call(draft, call, with_tools)
            case _:
                draft.note(part)

    async def _show_rest(self, draft: Draft, with_tools: bool) -> None:
        """The end of a text with calls in it: what was held back, and the calls."""
        if draft.shown is not None:
            await self._show_text(draft, draft.shown.finish())
        for call in draft.written_calls():
            await self._take_call(draft, call, with_tools)

    async def _take_call(self, draft: Draft, call: ToolCall, with_tools: bool) -> None:
        # A model that calls although no tool was offered gets no result, so the call may not stay.
        if with_tools:
            await self._tools.announce(draft.add_call(call))

    async def _show_text(self, draft: Draft, text: str) -> None:
        if text:
            await self._talk.emit(AgentText(draft.answer.id, text))


def call_id(prefix: str, index: int) -> str:
    """Our id for the call number `index` of a reply: unique in the session, as turn ids are."""
    return f"{prefix}_{index}"
