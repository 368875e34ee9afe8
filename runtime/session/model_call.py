"""One accepted reply of the model: composed, asked for, shown as it streams, saved while it does.

Knows no tool's work and no turn's end. An overflow shrinks the request and asks again, as long as that helps.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.request_log import attempt_step
from runtime.conversation.retry import MAX_RETRIES, blames_pictures, retry_delay
from runtime.history.live.without_parts import blinded, left_out, refused_pictures
from runtime.history.request.compose import Composed
from runtime.history.rows.calls_in_text import TagFilter
from runtime.session.streaming_reply import Draft
from runtime.session.tool_calls import ToolRun
from runtime.transcript.recorder import Recorder
from runtime.trimming.refused_request import RefusedRequests
from runtime.trimming.tool_rounds import LoopContext
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.events import AgentText, AgentThought, Noticed
from runtime.values.ids_and_time import new_id
from runtime.values.model import CallPart, ModelRequest, Part, StopPart, TextPart, ThoughtPart
from runtime.values.rows import ToolCall
from runtime.values.texts import RETRYING
from schemas.transcript import ReplyStep, RequestRecord

RecordMaker = Callable[[], RequestRecord]


class Asking:
    """The provider calls of one turn. `draft` is what a call has brought so far, until it is accepted."""

    def __init__(self, talk: Conversation, recorder: Recorder, tools: ToolRun) -> None:
        self.draft: Draft | None = None
        self._talk = talk
        self._recorder = recorder
        self._tools = tools
        self._loop = LoopContext(talk.keeper, recorder)
        self._refused = RefusedRequests(talk.keeper, recorder, talk.emit)

    async def reply(self, number: int, *, with_tools: bool = True) -> ReplyStep:
        """The reply of the turn's provider call `number`. Without tools, calls in it are not taken.

        Raises ProviderError, ContextWindowExceeded; `draft` then holds what was shown.
        """
        setup = self._talk.setup
        composed = await self._composed(number, with_tools, attempt=0)
        self._refused.begin()
        attempt = tries = 0
        while True:
            request, record = self._request(composed, with_tools)
            try:
                return await self._answer(number, request, record, with_tools)
            except ProviderError as error:
                nothing_shown = self.draft is None or self.draft.empty
                too_long = self._refused.judge(error) if nothing_shown else None
                pictures = nothing_shown and not too_long and self._refused_pictures(error)
                step = attempt_step(error, record(), too_long, pictures=pictures)
                await self._recorder.attempt(number, step)
                attempt += 1
                if too_long is not None:
                    composed = await self._refused.smaller(
                        too_long, error, composed, number, with_tools=with_tools
                    )
                elif pictures:
                    await self._leave_pictures_out(error)
                    composed = await self._composed(number, with_tools, attempt)
                elif nothing_shown and (delay := retry_delay(error, tries, setup.jitter)) is not None:
                    tries += 1
                    await self._wait(error, tries, delay)
                elif nothing_shown and await self._talk.fall_back(error):
                    tries = 0
                    composed = await self._composed(number, with_tools, attempt)
                else:
                    self._refused.end(error)
                    raise

    def _refused_pictures(self, error: ProviderError) -> bool:
        """Whether the pictures of this turn's prompt are why the request was refused."""
        return blames_pictures(error) and bool(refused_pictures(self._talk.keeper.history))

    async def _leave_pictures_out(self, error: ProviderError) -> None:
        """Go on without them: one that is refused now would be refused with every later prompt as well."""
        keeper = self._talk.keeper
        lines = [left_out(image, error.message) for image in refused_pictures(keeper.history)]
        keeper.history = blinded(keeper.history, error.message)
        await self._talk.emit(Noticed("warning", "A picture was refused", "\n".join(lines)))

    async def _composed(self, number: int, with_tools: bool, attempt: int) -> Composed:
        """The next request, the running turn's own history bounded first."""
        if self._talk.setup.trimmer is not None:
            await self._loop.before_call(number, attempt)
        return await self._talk.keeper.compose(self._recorder, number, with_tools=with_tools)

    def _request(self, composed: Composed, with_tools: bool) -> tuple[ModelRequest, RecordMaker]:
        """The request, and what gives its record."""
        keeper = self._talk.keeper
        step = self._talk.notes.requests.new_setup(keeper)
        if step is not None:
            self._recorder.hold(step)
        request = ModelRequest(
            keeper.route.model,
            composed.segments,
            keeper.native_specs if with_tools else (),
            composed.max_output_tokens,
            ready=self._recorder.flush,
        )
        record = self._talk.notes.requests.record(keeper, request, tools=with_tools)
        return replace(request, sent=record), record

    async def _wait(self, error: ProviderError, tries: int, delay: float) -> None:
        """Until the same request is sent again, which the person is told."""
        text = RETRYING.format(
            why=error.message, seconds=f"{delay:.1f}", number=tries + 1, of=MAX_RETRIES + 1
        )
        await self._talk.emit(Noticed("info", "Waiting for the model", text))
        await trio.sleep(delay)

    async def _answer(
        self, number: int, request: ModelRequest, record: RecordMaker, with_tools: bool
    ) -> ReplyStep:
        """The reply to a request. One that the provider's filters stopped is a reply too, a refusal."""
        try:
            return await self._stream(number, request, record, with_tools)
        except ProviderError as error:
            draft = self.draft
            if error.kind is not ProviderErrorKind.REFUSED or draft is None or draft.calls:
                raise
            if draft.empty:
                await self._show_text(draft, draft.add_text(error.message))
            self.draft = None
            draft.note(StopPart("refusal"))
            return draft.reply()

    async def _stream(
        self, number: int, request: ModelRequest, record: RecordMaker, with_tools: bool
    ) -> ReplyStep:
        in_text = self._talk.setup.prompt_tools
        ids = partial(call_id, f"call_{self._recorder.turn_id}_{number}")
        draft = Draft(number, new_id, ids, TagFilter() if in_text else None)
        draft.request = record
        self.draft = draft
        provider = await self._talk.setup.provider()
        async with provider.stream(request) as batches:
            await self._tools.show_ends()
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
            await self._tools.announce(draft.iteration, draft.add_call(call))

    async def _show_text(self, draft: Draft, text: str) -> None:
        if text:
            await self._talk.emit(AgentText(draft.answer.id, text))


def call_id(prefix: str, index: int) -> str:
    """Our id for the call number `index` of a reply: unique in the session, as turn ids are."""
    return f"{prefix}_{index}"
