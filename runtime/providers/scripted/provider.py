"""A provider that plays a script: answers, tool calls, delays and faults without any network.

For demos, for tests of whoever embeds the runtime, and for ours. It is as strict as real servers
are: a request with a broken pair of call and result is refused. Knows no file.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import orjson
import trio

from runtime.providers.errors.failures import Peer, failure, status_failure
from runtime.providers.scripted.script import Reply, Script, ScriptedFault
from runtime.providers.scripted.script_file import load_script
from runtime.providers.settings import ProviderSettings, check_options
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.model import (
    CallPart,
    CallStartPart,
    ModelRequest,
    Part,
    StopPart,
    TextPart,
    ThoughtPart,
    UsagePart,
)
from runtime.values.rows import Row, ToolCall

IMAGE_TOKENS = 1600


def broken_pair(rows: Sequence[Row]) -> str:
    """What is wrong between tool calls and their results, '' when nothing is.

    Strict: the results of a call row stand directly after it, each call answered exactly once.
    """
    waiting: list[str] = []
    for row in rows:
        if row.role == "tool":
            if row.tool_call_id not in waiting:
                return f"result without call: {row.tool_call_id}"
            waiting.remove(row.tool_call_id)
            continue
        if waiting:
            break
        waiting = [call.id for call in row.tool_calls]
        if len(set(waiting)) != len(waiting):
            return "two calls of one row have the same id"
    return f"call without result: {waiting[0]}" if waiting else ""


def request_size(request: ModelRequest) -> int:
    """Tokens as a server without a vocabulary would count them: bytes / 4 and 4 a row."""
    rows = sum(map(_row_size, request.rows()))
    return rows + sum(_tokens(tool.name + tool.description + tool.parameters) + 4 for tool in request.tools)


def _row_size(row: Row) -> int:
    calls = "".join(call.id + call.name + call.arguments for call in row.tool_calls)
    return _tokens(row.content + calls) + 4 + IMAGE_TOKENS * len(row.images)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


LAST_CAP = 200
"""Characters of the user's text that `{last}` gives."""
OPTIONS = ("script",)


def warm() -> None:
    """Nothing is left to do once this module is imported."""


def create(settings: ProviderSettings) -> "ScriptedProvider":
    """The provider of a `kind = "scripted"` section. Raises ConfigError."""
    check_options(settings, OPTIONS)
    path = settings.options.get("script")
    if not isinstance(path, str) or not path:
        raise settings.problem("script", "must name a YAML or JSON file")
    return ScriptedProvider(load_script(Path(path).expanduser()), name=settings.name)


class ScriptedProvider:
    """Plays `script`. One counter serves all sessions, so runs are the same each time.

    keep_requests: how many of the latest requests `requests` holds, for tests; 0 keeps none.
    """

    def __init__(self, script: Script, *, name: str = "scripted", keep_requests: int = 0) -> None:
        self.name = name
        self.requests: list[ModelRequest] = []
        self._script = script
        self._keep = keep_requests
        self._served = 0
        self._uses = [0] * len(script.replies)

    async def aclose(self) -> None:
        """Nothing is open."""

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Sequence[Part]]]:
        await trio.lowlevel.checkpoint()
        await request.ready()
        self._served += 1
        number = self._served
        self._remember(request)
        peer = Peer(self.name, model=request.model)
        self._check(request, peer)
        reply = self._choose(request, number)
        await trio.sleep(reply.delay)
        if reply.fault and not reply.pieces and not reply.thought:
            raise _error(peer, reply.fault)
        async with aclosing(_play(reply, request, number, peer)) as parts:
            yield parts

    def _remember(self, request: ModelRequest) -> None:
        if self._keep:
            self.requests.append(request)
            del self.requests[: -self._keep]

    def _check(self, request: ModelRequest, peer: Peer) -> None:
        problem = broken_pair(request.rows())
        if problem:
            raise _refusal(peer, "invalid_request_error", problem)
        size, limit = request_size(request), self._script.limit_tokens
        if limit and size > limit:
            text = (
                f"This model's maximum context length is {limit} tokens. "
                f"However, your messages resulted in {size} tokens."
            )
            raise _refusal(peer, "context_length_exceeded", text)

    def _choose(self, request: ModelRequest, number: int) -> Reply:
        asked = _last_user(request)
        index = self._next(asked)
        if index is None and self._script.loop:
            self._uses = [0] * len(self._uses)
            index = self._next(asked)
        if index is not None:
            self._uses[index] += 1
            return self._script.replies[index]
        if self._script.echo:
            return Reply(pieces=(_filled(self._script.echo, request, number),))
        count = len(self._script.replies)
        raise ProviderError(
            f'The script of provider "{self.name}" has no reply left for request {number} '
            f"({count} in all); add replies, echo, or loop: true.",
            kind=ProviderErrorKind.BAD_REQUEST,
            retryable=False,
        )

    def _next(self, asked: str) -> int | None:
        """The first reply that is not used up and whose `when` fits."""
        for index, reply in enumerate(self._script.replies):
            free = reply.uses is None or self._uses[index] < reply.uses
            if free and reply.when in asked:
                return index
        return None


async def _play(
    reply: Reply, request: ModelRequest, number: int, peer: Peer
) -> AsyncGenerator[Sequence[Part], None]:
    if reply.thought:
        yield [ThoughtPart(reply.thought)]
    for index, piece in enumerate(reply.pieces):
        await trio.sleep(reply.chunk_delay if index else 0)
        yield [TextPart(piece)]
    await trio.lowlevel.checkpoint()
    if reply.fault:
        raise _error(peer, reply.fault)
    if reply.hang:
        await trio.sleep_forever()
    if reply.drop:
        raise failure(peer, ProviderErrorKind.STREAM_DROPPED)
    yield _last_parts(reply, request, number)


def _last_parts(reply: Reply, request: ModelRequest, number: int) -> list[Part]:
    parts: list[Part] = []
    for index, call in enumerate(reply.calls):
        ident = call.id or f"call_{number}_{index + 1}"
        parts.append(CallStartPart(index, ident, call.name))
        parts.append(CallPart(index, ToolCall(ident, call.name, call.arguments)))
    written = len("".join(reply.pieces).encode("utf-8", "surrogatepass"))
    parts.append(reply.usage or UsagePart(request_size(request), -(-written // 4)))
    parts.append(StopPart(reply.stop or ("tool_calls" if reply.calls else "end")))
    return parts


def _last_user(request: ModelRequest) -> str:
    return next((row.content for row in reversed(request.rows()) if row.role == "user"), "")


def _filled(template: str, request: ModelRequest, number: int) -> str:
    """`{last}` goes in last: what the user wrote is not searched for fields."""
    turns = sum(row.role == "user" and row.origin != "runtime" for row in request.rows())
    text = template.replace("{n}", str(number)).replace("{turn}", str(turns))
    return text.replace("{last}", _last_user(request)[:LAST_CAP])


def _error(peer: Peer, fault: ScriptedFault) -> ProviderError:
    if fault.status is not None and fault.kind is None:
        error = {"message": fault.message, "code": fault.code or None}
        return status_failure(peer, fault.status, orjson.dumps({"error": error}), fault.retry_after)
    return failure(
        peer,
        fault.kind or ProviderErrorKind.SERVER,
        status=fault.status,
        code=fault.code,
        detail=fault.message,
        retry_after=fault.retry_after,
    )


def _refusal(peer: Peer, code: str, text: str) -> ProviderError:
    return status_failure(peer, 400, orjson.dumps({"error": {"message": text, "code": code}}))
