"""A GGUF model in this process, on the maps of chat completions, and what a `kind = "local"` section means.

One model serves all sessions, one request at a time, in the order of their arrival. It is loaded with the
first request, in the thread that then answers it. Knows `engine`, not the library.
"""

import contextlib
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import orjson
import trio

from runtime.providers.errors.failures import Peer, status_failure
from runtime.providers.http.decoding import Decoder, table
from runtime.providers.http.settings import Check, as_table, chosen, flag, members, tokens
from runtime.providers.local.engine import Engine, EngineError, Launch, Refused, library, load
from runtime.providers.local.guided_replies import (
    GuidedDecoder,
    guided_rows,
    is_guided,
    plain_rows,
    reply_schema,
)
from runtime.providers.local.model_files import DEFAULT_MODEL, locate, missing, models_dir
from runtime.providers.local.thread_events import Run
from runtime.providers.openai_chat.events import ChatDecoder
from runtime.providers.openai_chat.request import OWN_MEMBERS, BodyShape, BodyWriter
from runtime.providers.settings import LOCAL_WINDOW, ProviderSettings
from runtime.values.errors import ConfigError
from runtime.values.model import ModelRequest, Part

SMALLEST_N_CTX = 256
MOST_THREADS = 8
"""More wait for each other and for the memory."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """n_ctx: tokens of the window that the model is started with. guided_tools: None lets the model decide.

    extra: members of every request's body.
    """

    n_ctx: int = LOCAL_WINDOW
    n_threads: int = 1
    guided_tools: bool | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


def read(settings: ProviderSettings) -> LocalSettings:
    """The section's options. Raises ConfigError that names the key."""
    options = chosen(settings, OPTIONS)
    guided = options.get("guided_tools")
    return LocalSettings(
        n_ctx=int(str(options.get("n_ctx") or settings.context_window or LOCAL_WINDOW)),
        n_threads=int(str(options.get("n_threads") or default_threads())),
        guided_tools=None if guided is None else bool(guided),
        extra=as_table(options.get("extra_body")) or {},
    )


def model_name(settings: ProviderSettings, asked: str = "") -> str:
    """The model to run: the one a request asks for, the section's, or the one that can be pulled."""
    return asked or settings.model or DEFAULT_MODEL


def default_threads() -> int:
    """One core stays free: where the editor takes a core from the model, its other threads wait, spinning."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores - 1, MOST_THREADS))


def _threads(settings: ProviderSettings, name: str, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 512:
        raise settings.problem(name, "must be a whole number of threads, at least 1")
    return value


OPTIONS: Mapping[str, Check] = {
    "n_ctx": tokens(SMALLEST_N_CTX),
    "n_threads": _threads,
    "guided_tools": flag,
    "extra_body": members(OWN_MEMBERS | {"response_format", "return_progress"}),
}

CLOSE_SECONDS = 3.0
"""How long a request that was left may take to notice it, when the process ends."""
ERROR = b'{"error"'


def warm() -> None:
    """Import the library if it is there. Blocks: meant for a thread."""
    with contextlib.suppress(EngineError):
        library()


def create(settings: ProviderSettings) -> "LocalProvider":
    """The provider of a `kind = "local"` section. Raises ConfigError, also when the model is not there."""
    provider = LocalProvider(settings)
    provider.launch(settings.model)
    return provider


class LocalProvider:
    """A model in this process. start and environ are given by tests and embedders."""

    def __init__(
        self,
        settings: ProviderSettings,
        *,
        start: Callable[[Launch], Engine] = load,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._local = read(settings)
        self._start = start
        self._environ = environ
        self._turn = trio.Semaphore(1)
        self._loaded: tuple[Launch, Engine] | None = None

    def launch(self, asked: str = "") -> Launch:
        """How the model of a request is started. Raises ConfigError when its file is not there."""
        model, folder = model_name(self._settings, asked), models_dir(self._environ)
        problem = missing(model, folder)
        if problem:
            raise self._settings.problem("model", problem)
        return Launch(locate(model, folder), self._local.n_ctx, self._local.n_threads)

    async def aclose(self) -> None:
        """Let go of the model, once nothing runs on it any more."""
        with trio.move_on_after(CLOSE_SECONDS):
            await self._turn.acquire()
            self._loaded = None
            self._turn.release()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Sequence[Part]]]:
        """Raises ConfigError too, when the model cannot be run."""
        await request.ready()
        launch = self.launch(request.model)
        await self._turn.acquire()
        run = Run(partial(self._answer, launch, request), self._turn.release)
        run.start()
        try:
            async with aclosing(self._parts(request, run)) as parts:
                first = await anext(parts, ())
                async with aclosing(_with_first(first, parts)) as batches:
                    yield batches
        finally:
            run.stop()

    def _answer(self, launch: Launch, request: ModelRequest, run: Run) -> None:
        """The whole of a request, in its thread. The model stays for the next one."""
        engine = self._engine(launch)
        if not run.stopped:
            engine.ask(self._body(engine, request), run.take)

    def _engine(self, launch: Launch) -> Engine:
        if self._loaded is None or self._loaded[0] != launch:
            self._loaded = None  # two at once may not fit
            try:
                self._loaded = launch, self._start(launch)
            except EngineError as error:
                raise ConfigError(f'The model of provider "{self.name}" {error}') from None
        return self._loaded[1]

    def _guided(self, engine: Engine, request: ModelRequest) -> bool:
        wanted = self._local.guided_tools
        return is_guided(request) and (not engine.native_tools if wanted is None else wanted)

    def _body(self, engine: Engine, request: ModelRequest) -> bytes:
        extra: dict[str, object] = {**self._local.extra, "return_progress": True}
        sent = plain_rows(request)
        if self._guided(engine, request):
            sent = guided_rows(request)
            schema = {"name": "reply", "strict": True, "schema": reply_schema(request.tools)}
            extra["response_format"] = {"type": "json_schema", "json_schema": schema}
        return BodyWriter(BodyShape(extra=extra)).body(sent)

    def _decoder(self, request: ModelRequest, peer: Peer) -> Decoder:
        assert self._loaded is not None  # it has answered
        kind = GuidedDecoder if self._guided(self._loaded[1], request) else ChatDecoder
        return kind(peer, lambda: "call_" + secrets.token_hex(8))

    async def _parts(self, request: ModelRequest, run: Run) -> AsyncGenerator[Sequence[Part], None]:
        """Batches of parts, the last one with the stop. Raises ProviderError."""
        peer = Peer(self.name, model=request.model)
        decoder: Decoder | None = None
        try:
            async with aclosing(run.batches()) as batches:
                async for events in batches:
                    decoder = decoder or self._decoder(request, peer)
                    parts = decoder.feed(_checked(events, peer))
                    if parts:
                        yield parts
                    if decoder.failure:
                        raise decoder.failure
        except Refused as error:
            raise status_failure(peer, 400, orjson.dumps({"error": {"message": str(error)}})) from None
        decoder = decoder or self._decoder(request, peer)
        last = decoder.end()
        if decoder.failure:
            raise decoder.failure
        yield last


def _checked(events: Iterable[bytes], peer: Peer) -> Iterator[bytes]:
    """The events up to an error, which is what an HTTP server would have answered with its status."""
    for event in events:
        if event.startswith(ERROR):
            code = table(table(orjson.loads(event)).get("error")).get("code")
            raise status_failure(peer, code if isinstance(code, int) else 500, event)
        yield event


async def _with_first(
    first: Sequence[Part], rest: AsyncIterator[Sequence[Part]]
) -> AsyncGenerator[Sequence[Part], None]:
    if first:
        yield first
    async for parts in rest:
        yield parts
