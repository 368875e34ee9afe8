"""The connection's end, and its patience with a client that does not read."""

import itertools
import json
import signal
from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from acp_server.wire.connection import Connection
from acp_server.wire.dispatch import Answer, Later
from acp_server.wire.errors import ClientCallError
from acp_server.wire.stdio import Hello
from acp_server.wire.writer import HIGH_WATER, LINGER
from tests.acp_server.wire.wire_peer import BASIC, HELLO, Methods, SmallApp, talk

GREETED = Hello({"protocolVersion": 1})


class DeafClient(trio.abc.Stream):
    """Sends what a test puts in, and reads nothing until `listen` is set."""

    def __init__(self) -> None:
        self.sending, self._incoming = trio.open_memory_channel[bytes](100)
        self.listen = trio.Event()
        self.got = bytearray()
        self.sends = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        try:
            return await self._incoming.receive()
        except trio.EndOfChannel:
            return b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.sends += 1
        middle = len(data) // 2
        self.got += data[:middle]
        await self.listen.wait()
        await trio.lowlevel.checkpoint()
        self.got += data[middle:]

    async def wait_send_all_might_not_block(self) -> None:
        await self.listen.wait()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


def line(method: str, request_id: object = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method} | ({} if request_id is None else {"id": request_id})
    return json.dumps(message).encode() + b"\n"


async def received(stream: trio.abc.ReceiveStream) -> bytes:
    with trio.fail_after(10):
        return bytes(await stream.receive_some())


def served(stream: trio.abc.Stream, methods: Methods, app: SmallApp) -> Connection[SmallApp]:
    return Connection(stream, BASIC | methods, app, hello=GREETED)


# ---------------------------------------------------------------- a client that does not read


async def test_the_reader_never_waits_for_the_client(nursery: trio.Nursery) -> None:
    heard: list[object] = []
    stream, app = DeafClient(), SmallApp()
    connection = served(stream, {"cancel": lambda app, params: heard.append(params)}, app)
    nursery.start_soon(connection.serve)
    sent = 0

    async def produce() -> None:
        nonlocal sent
        for _ in range(100):
            await connection.notify("chunk", {"text": "x" * 100_000})
            sent += 1

    nursery.start_soon(produce)
    await wait_all_tasks_blocked()
    # The producer waits near the mark, yet requests are answered and notifications heard.
    assert HIGH_WATER < sent * 100_000 < HIGH_WATER + 1_000_000
    for number in range(50):
        await stream.sending.send(line("ping", number) + line("cancel"))
    await wait_all_tasks_blocked()
    assert len(heard) == 50
    assert sent < 100
    stream.listen.set()
    await wait_all_tasks_blocked()
    messages = [json.loads(one) for one in bytes(stream.got).splitlines()]
    assert [one["id"] for one in messages if "id" in one] == list(range(50))
    assert len(messages) == 150
    await stream.sending.aclose()


async def test_a_cancelled_producer_leaves_whole_lines(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    stream, app = DeafClient(), SmallApp()
    connection = served(stream, {}, app)
    nursery.start_soon(connection.serve)
    await wait_all_tasks_blocked()
    with trio.CancelScope() as scope:
        nursery.start_soon(connection.notify, "first", {"text": "x" * 1000})
        await trio.sleep(LINGER * 2)
        assert 0 < len(stream.got) < 1000
        scope.cancel()
        await connection.notify("cancelled", {})
    await connection.notify("last", {})
    stream.listen.set()
    await trio.sleep(LINGER * 2)
    assert [json.loads(one)["method"] for one in bytes(stream.got).splitlines()] == ["first", "last"]
    await stream.sending.aclose()


async def test_many_notifications_leave_in_few_writes(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    stream, app = DeafClient(), SmallApp()
    stream.listen.set()
    connection = served(stream, {}, app)
    nursery.start_soon(connection.serve)
    for number in range(20_000):
        await connection.notify("chunk", {"n": number})
    await trio.sleep(LINGER * 2)
    assert [json.loads(one)["params"]["n"] for one in bytes(stream.got).splitlines()] == list(range(20_000))
    assert stream.sends < 1000
    await stream.sending.aclose()


async def test_a_lone_notification_leaves_soon_and_an_answer_takes_it_along_at_once(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    stream, app = DeafClient(), SmallApp()
    stream.listen.set()
    connection = served(stream, {}, app)
    nursery.start_soon(connection.serve)
    await connection.notify("alone", {})
    await trio.sleep(LINGER * 2)
    assert b"alone" in stream.got
    await connection.notify("with the answer", {})
    stream.sending.send_nowait(b"garbage\n")
    await trio.sleep(LINGER / 2)
    methods = [json.loads(one).get("method") for one in bytes(stream.got).splitlines()]
    assert methods == ["alone", "with the answer", None]
    await stream.sending.aclose()


async def test_a_producer_lets_others_run(nursery: trio.Nursery) -> None:
    stream, app = DeafClient(), SmallApp()
    heard: list[int] = []
    sent = itertools.count()
    connection = served(stream, {"cancel": lambda app, params: heard.append(next(sent))}, app)
    nursery.start_soon(connection.serve)
    await wait_all_tasks_blocked()
    stream.sending.send_nowait(line("cancel"))
    while next(sent) < 1000:
        await connection.notify("chunk", {})
    assert heard
    assert heard[0] < 200
    await stream.sending.aclose()


# ---------------------------------------------------------------- the end


async def test_the_end_of_input_lets_open_requests_answer(autojump_clock: MockClock) -> None:
    def prompt(app: SmallApp, params: Mapping[str, object]) -> Later:
        async def run() -> object:
            await app.gate.wait()
            await trio.sleep(0.1)
            return {"stopReason": "cancelled"}

        return Later(run, cancel=app.gate.set)

    def store(app: SmallApp, params: Mapping[str, object]) -> Later:
        async def run() -> object:
            await trio.sleep(0.2)
            return {}

        return Later(run)

    async with talk({"prompt": prompt, "store": store, "hang": _hang}) as it:
        await it.peer.send(line("prompt", 1), line("store", 2), line("hang", 3))
        await it.peer.stream.send_eof()  # type: ignore[attr-defined]
        await it.done.wait()
        assert (await it.peer.read())["result"] == {"stopReason": "cancelled"}
        assert (await it.peer.read())["id"] == 2
        assert it.app.log == ["stopped"]
        assert it.app.closed == 1
    assert trio.current_time() < 2


def _hang(app: SmallApp, params: Mapping[str, object]) -> Later:
    async def run() -> object:
        try:
            await trio.sleep_forever()
        finally:
            app.log.append("stopped")

    return Later(run)


async def test_the_end_of_input_fails_calls_that_wait_so_that_their_request_can_answer() -> None:
    async with talk() as it:

        def prompt(app: SmallApp, params: Mapping[str, object]) -> Later:
            async def run() -> object:
                with pytest.raises(ClientCallError):
                    await it.connection.call("ask", {})
                return {"stopReason": "cancelled"}

            return Later(run)

        it.methods["prompt"] = prompt
        await it.peer.send(line("prompt", 1))
        assert (await it.peer.read())["method"] == "ask"
        await it.peer.stream.send_eof()  # type: ignore[attr-defined]
        assert (await it.peer.read())["result"] == {"stopReason": "cancelled"}


class SlowApp(SmallApp):
    async def aclose(self) -> None:
        await trio.sleep_forever()


class BrokenApp(SmallApp):
    async def aclose(self) -> None:
        raise OSError

    def initialized(self, params: Mapping[str, object]) -> None:
        raise ValueError


async def test_all_that_can_hang_at_the_end_is_bounded(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    stream, app = DeafClient(), SlowApp()
    connection = served(stream, {"hang": _hang}, app)
    await stream.sending.send(line("hang", 1) + line("ping", 2))
    await stream.sending.aclose()
    await connection.serve()
    assert trio.current_time() < 2
    assert app.log == ["stopped"]
    assert "given up" in caplog.text
    assert "not delivered" in caplog.text


async def test_an_app_that_fails_ends_nothing_early(caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = memory_stream_pair()
    connection = served(ours, {}, BrokenApp())
    await theirs.send_all(line("ping", 1))
    await theirs.send_eof()
    with trio.fail_after(10):
        await connection.serve()
    assert b"pong" in await received(theirs)
    assert "closing failed" in caplog.text


class Gone(trio.abc.Stream):
    """A client that has gone: every use fails."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class Unheard(DeafClient):
    """A client that still has its sending side open, and no receiving side any more."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError


@pytest.mark.parametrize("kind", [Gone, Unheard])
async def test_a_client_that_has_gone_is_the_end(
    kind: type[Gone | Unheard], caplog: pytest.LogCaptureFixture
) -> None:
    stream, app = kind(), SmallApp()
    connection = served(stream, {}, app)
    connection.notify_nowait("chunk", {})
    with trio.fail_after(10):
        await connection.serve()
    assert app.closed == 1
    assert "Traceback" not in caplog.text
    # nothing waits for it later either
    with trio.fail_after(1):
        for _ in range(100):
            await connection.notify("chunk", {"text": "x" * 100_000})
    with pytest.raises(ClientCallError):
        await connection.call("ask", {})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signals_are_the_end(number: signal.Signals, nursery: trio.Nursery) -> None:
    # An outer receiver: should the connection miss it, the test fails and not the whole run.
    with trio.open_signal_receiver(number):
        stream, app, done = DeafClient(), SmallApp(), trio.Event()
        connection = served(stream, {}, app)

        async def serve() -> None:
            await connection.serve()
            done.set()

        nursery.start_soon(serve)
        await wait_all_tasks_blocked()
        signal.raise_signal(number)
        with trio.fail_after(5):
            await done.wait()
        assert app.closed == 1


async def test_it_works_in_a_thread_that_gets_no_signals() -> None:
    async def main() -> int:
        stream, app = DeafClient(), SmallApp()
        await stream.sending.aclose()
        await served(stream, {}, app).serve()
        return app.closed

    assert await trio.to_thread.run_sync(lambda: trio.run(main)) == 1


async def test_cancelled_from_outside_it_still_closes_and_flushes() -> None:
    ours, theirs = memory_stream_pair()
    app = SmallApp()
    connection = served(ours, {}, app)
    with trio.move_on_after(10) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.serve)
            await wait_all_tasks_blocked()
            connection.notify_nowait("last", {})
            nursery.cancel_scope.cancel()
    assert not scope.cancelled_caught
    assert app.closed == 1
    assert b'"last"' in await received(theirs)


@pytest.mark.parametrize(
    ("rest", "answered"),
    [
        (line("ping", "last")[:-1], True),
        (line("ping", "last")[:-1] + b"\r", True),
        (line("ping", "last")[:-2], False),
        (b"[1]", False),
    ],
)
async def test_a_last_line_without_its_end(rest: bytes, answered: bool) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(line("ping", "whole") + rest)
    await theirs.send_eof()
    await served(ours, {}, SmallApp()).serve()
    await ours.aclose()
    got = bytearray()
    while data := await received(theirs):
        got += data
    ids = [json.loads(one)["id"] for one in bytes(got).splitlines()]
    assert ids == (["whole", "last"] if answered else ["whole"])


async def test_an_input_that_ended_with_the_first_read() -> None:
    ours, theirs = memory_stream_pair()
    app = SmallApp()
    first = Hello(rest=json.dumps(HELLO).encode(), eof=True)
    with trio.fail_after(10):
        await Connection(ours, BASIC, app, hello=first).serve()
    assert b'"protocolVersion":1' in await received(theirs)


async def test_notifications_may_start_work() -> None:
    def note(app: SmallApp, params: Mapping[str, object]) -> Later:
        async def run() -> object:
            app.log.append("worked")
            raise OSError

        return Later(run)

    async with talk({"note": note, "get": lambda app, params: Answer({"log": list(app.log)})}) as it:
        await it.peer.answers_to(line("note"))
        await wait_all_tasks_blocked()
        (answer,) = await it.peer.answers_to(line("get", 1))
        assert answer["result"] == {"log": ["worked"]}
