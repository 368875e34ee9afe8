"""One client: reads lines, decides, answers or starts work; all that is sent goes through one queue.

Knows neither what the methods do nor what carries the bytes. Nothing here waits for the client to
read: that is the writer's business, so a cancellation is always heard.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

import trio

from acp_server.wire.dispatch import (
    Answer,
    Failure,
    Handler,
    Later,
    Outcome,
    Then,
    finish,
    invalid,
    refusal,
    response,
    start,
)
from acp_server.wire.framing import read_messages
from acp_server.wire.messages import (
    CANCEL_REQUEST,
    Garbage,
    Ignored,
    Message,
    Notification,
    Params,
    Reply,
    Request,
    Unsendable,
    encode,
    encode_response,
    is_id,
)
from acp_server.wire.pending_requests import Calls, InFlight, Work
from acp_server.wire.stdio import Hello
from acp_server.wire.streams import watch_signals
from acp_server.wire.writer import LineWriter

logger = logging.getLogger("wholeturn.connection")

INITIALIZE: Final = "initialize"

# Seconds from the end of input to the return of `serve`: together below two.
WORK_GRACE: Final = 0.7
APP_GRACE: Final = 0.9
FLUSH_GRACE: Final = 0.3


class App(Protocol):
    """What stands behind the methods, as far as the connection needs it."""

    def initialized(self, params: Mapping[str, object]) -> None:
        """`initialize` was answered; its parameters as decoded, not validated beyond the version."""
        ...

    def has_sessions(self) -> bool:
        """Whether a session was opened on this connection: then `initialize` is refused."""
        ...

    async def aclose(self) -> None:
        """Stop everything and store what must be kept. Called once, and cancelled when it takes too long."""
        ...


AppT = TypeVar("AppT", bound=App)


class Connection(Generic[AppT]):
    """A JSON-RPC peer on a stream. `methods` are the requests and notifications that are answered.

    hello: what was read, and perhaps answered, before. The stream stays the caller's to close.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        methods: Mapping[str, Handler[AppT]],
        app: AppT,
        *,
        hello: Hello | None = None,
    ) -> None:
        self._stream = stream
        self._methods = methods
        self._app = app
        self._hello = hello or Hello()
        self._initialized = self._hello.params is not None
        self._writer = LineWriter(stream)
        self._calls = Calls(self._writer.put)
        self._inflight = InFlight()
        self._ended = trio.Event()
        self._work: trio.Nursery | None = None

    # ------------------------------------------------------------ life

    async def serve(self, *, signals: bool = True) -> None:
        """Serve until the input ends, the client has gone, a signal comes that ends us, or `stop` is called.

        Then open requests get a moment to end by themselves, the app is closed, the queue flushed; within
        two seconds. Returns normally. signals=False: they are the business of whoever serves many.
        """
        async with trio.open_nursery() as service:
            try:
                if signals:
                    await service.start(watch_signals, self.stop)
                service.start_soon(self._write)
                await self._serve_work(service)
            finally:
                await self._wind_up()
                service.cancel_scope.cancel()

    def is_working(self) -> bool:
        """Whether a request of the client waits for its answer."""
        return bool(self._inflight)

    def stop(self) -> None:
        """End `serve` as if the input had ended."""
        self._ended.set()

    async def _serve_work(self, service: trio.Nursery) -> None:
        async with trio.open_nursery() as work:
            self._work = work
            if self._hello.params is not None:
                self._greeted(self._hello.params)
            service.start_soon(self._read)
            await self._ended.wait()
            self._calls.hang_up()
            self._inflight.hang_up()
            work.cancel_scope.deadline = trio.current_time() + WORK_GRACE

    async def _wind_up(self) -> None:
        self._ended.set()
        self._calls.hang_up()
        with trio.move_on_after(APP_GRACE, shield=True) as scope:
            try:
                await self._app.aclose()
            except Exception:
                logger.exception("closing failed")
        if scope.cancelled_caught:
            logger.warning("closing took longer than %s s and was given up", APP_GRACE)
        if not await self._writer.finish(FLUSH_GRACE):
            logger.warning("the client does not read: some messages were not delivered")

    # ------------------------------------------------------------ sending

    async def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Queue a notification; waits while the client is far behind. What cannot be sent is logged."""
        line = _notification(method, params)
        if line is not None:
            await self._writer.put_when_room(line)

    def notify_nowait(self, method: str, params: Mapping[str, object]) -> None:
        """The same without waiting. Several in a row, with no await between, stay together."""
        line = _notification(method, params)
        if line is not None:
            self._writer.put_lazily(line)

    async def send(self, line: bytes) -> None:
        """Queue an encoded line, its LF included; waits while the client is far behind."""
        await self._writer.put_when_room(line)

    async def call(self, method: str, params: Mapping[str, object]) -> object:
        """Ask the client. Raises ClientCallError; see `pending_requests.Calls.call`."""
        return await self._calls.call(method, params)

    def _respond(self, request: Request, outcome: Outcome) -> None:
        self._writer.put(encode_response(response(request.id, outcome)))

    def _respond_early(self, work: Work, result: object) -> None:
        if not work.answered:
            self._inflight.answered(work)
            self._respond(work.request, Answer(result))

    async def _write(self) -> None:
        await self._writer.run()
        self.stop()

    # ------------------------------------------------------------ receiving

    async def _read(self) -> None:
        await read_messages(self._stream, self._hello, self._ended, self._handle)
        self.stop()

    def _handle(self, message: Message) -> None:
        match message:
            case Request():
                self._request(message)
            case Notification():
                self._notification(message)
            case Reply():
                self._calls.settle(message)
            case Garbage():
                self._writer.put(encode_response(refusal(message)))
            case Ignored():
                logger.warning("ignored: %s", message.reason)

    def _request(self, request: Request) -> None:
        outcome = self._obstacle(request) or start(self._methods, self._app, request.method, request.params)
        if isinstance(outcome, Later):
            self._start_soon(self._inflight.add(request, outcome))
            return
        self._respond(request, outcome)
        if isinstance(outcome, Answer):
            self._answered(request, outcome)

    def _obstacle(self, request: Request) -> Failure | None:
        if self._inflight.has(request.id):
            return invalid("Invalid request: a request with this id is still open")
        if request.method == INITIALIZE:
            again = self._initialized and self._app.has_sessions()
            return invalid("Invalid request: already initialized, and a session is open") if again else None
        return None if self._initialized else invalid("Invalid request: initialize first")

    def _answered(self, request: Request, answer: Answer) -> None:
        if request.method == INITIALIZE:
            self._methods = answer.methods or self._methods
            self._greeted(request.params if isinstance(request.params, dict) else {})
        if answer.then is not None and self._work is not None:
            self._work.start_soon(_run_after, request.method, answer.then)

    def _greeted(self, params: Mapping[str, object]) -> None:
        self._initialized = True
        try:
            self._app.initialized(params)
        except Exception:
            logger.exception("taking the client's capabilities failed")

    def _start_soon(self, work: Work) -> None:
        assert self._work is not None  # set before the reader starts
        self._work.start_soon(self._do, work)

    async def _do(self, work: Work) -> None:
        if work.later.bind is not None:
            work.later.bind(partial(self._respond_early, work))
        outcome = await self._inflight.run(work)
        if not work.answered:
            self._respond(work.request, outcome)
        if isinstance(outcome, Answer) and outcome.then is not None:
            await _run_after(work.request.method, outcome.then)

    def _notification(self, notification: Notification) -> None:
        method = notification.method
        if method == CANCEL_REQUEST:
            self._cancel_request(notification.params)
        elif not self._initialized:
            logger.warning("ignored a notification before initialize")
        elif method in self._methods:
            self._notified(method, start(self._methods, self._app, method, notification.params))

    def _notified(self, method: str, outcome: Answer | Later | Failure) -> None:
        if isinstance(outcome, Failure):
            logger.warning("ignored %s: %s", method, outcome.error.message)
        elif isinstance(outcome, Later) and self._work is not None:
            self._work.start_soon(finish, method, outcome)

    def _cancel_request(self, params: Params) -> None:
        if isinstance(params, Mapping) and is_id(request_id := params.get("requestId", params)):
            self._inflight.give_up(request_id)


async def _run_after(method: str, then: Then) -> None:
    try:
        await then()
    except Exception:
        logger.exception("what follows the answer to %s failed", method)


def _notification(method: str, params: Mapping[str, object]) -> bytes | None:
    try:
        return encode({"jsonrpc": "2.0", "method": method, "params": params})
    except Unsendable as reason:
        logger.error("a notification %s was dropped: %s", method, reason)
        return None
