"""The connection: what comes back for which line, in which order, and that nothing stops it."""

import json
from collections.abc import Mapping

import pytest
import trio

from acp_server.acp.capabilities import initialize_result
from acp_server.wire.dispatch import Answer, Later
from acp_server.wire.framing import MAX_LINE
from acp_server.wire.stdio import Hello
from runtime.values.errors import InvalidParams
from tests.acp_server.wire.wire_peer import HELLO, SmallApp, talk


def request(request_id: object, method: str, params: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, params: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def brief(answers: list[dict[str, object]]) -> list[tuple[object, object]]:
    """(id, error code or None) of each."""
    found = [(one["id"], one.get("error")) for one in answers]
    return [(one, problem["code"] if isinstance(problem, dict) else None) for one, problem in found]


# ---------------------------------------------------------------- lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"garbage\n", [(None, -32700)]),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"\n', [(None, -32700)]),
        (b'{"jsonrpc":"2.0","id":1,"method":"p\xffng"}\n', [(None, -32700)]),
        (b"[]\n", [(None, -32600)]),
        (
            b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n',
            [(None, -32600)],
        ),
        (b"1\n", [(None, -32600)]),
        (b"{}\n", [(None, -32600)]),
        (b'{"id":"a","method":"ping"}\n', [("a", -32600)]),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":"x"}\n', [("a", -32600)]),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}\n', [("a", -32602)]),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping"}\r\n', [("a", None)]),
        (b'\n\r\n  \n{"jsonrpc":"2.0","id":"a","method":"ping"}\n\n', [("a", None)]),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', [(None, None)]),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","extra":1,"_meta":{}}\n', [("a", None)]),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n', [("\ufffd", None)]),
        # requests that nobody knows, and the same as notifications
        (b'{"jsonrpc":"2.0","id":1,"method":"foo"}\n', [(1, -32601)]),
        (b'{"jsonrpc":"2.0","id":1,"method":"_foo"}\n', [(1, -32601)]),
        (b'{"jsonrpc":"2.0","id":1,"method":"$/foo"}\n', [(1, -32601)]),
        (b'{"jsonrpc":"2.0","id":1,"method":"$/cancel_request"}\n', [(1, -32601)]),
        (b'{"jsonrpc":"2.0","method":"foo"}\n', []),
        (b'{"jsonrpc":"2.0","method":"_foo","params":{}}\n', []),
        (b'{"jsonrpc":"2.0","method":"$/foo"}\n', []),
        (b'{"jsonrpc":"2.0","method":"ping","params":"malformed"}\n', []),
        (b'{"jsonrpc":"2.0","method":"ping","params":[1]}\n', []),
        (b'{"jsonrpc":"2.0","method":"fail"}\n', []),
        (b'{"jsonrpc":"2.0","method":"refuse"}\n', []),
        # answers that nobody waits for
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid"}}\n', []),
        (b'{"jsonrpc":"2.0","id":999,"result":{}}\n', []),
        (b'{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"x"}}\n', []),
        (b'{"jsonrpc":"2.0","id":[],"error":7}\n', []),
        # cancelling what is not open
        (b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"none"}}\n', []),
        (b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}\n', []),
        (b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{}}\n', []),
        (b'{"jsonrpc":"2.0","method":"$/cancel_request","params":[1]}\n', []),
        (b'{"jsonrpc":"2.0","method":"$/cancel_request"}\n', []),
    ],
)
async def test_what_comes_back_for_a_line(line: bytes, expected: list[tuple[object, object]]) -> None:
    def fail(app: SmallApp, params: Mapping[str, object]) -> None:
        raise RuntimeError

    def refuse(app: SmallApp, params: Mapping[str, object]) -> None:
        raise InvalidParams("no")

    async with talk({"fail": fail, "refuse": refuse}) as it:
        assert brief(await it.peer.answers_to(line)) == expected


@pytest.mark.parametrize("text", ["0", "-5", str(2**53 + 1), str(2**70), '"uuid"', '""', "null", "1.50"])
async def test_ids_come_back_exactly(text: str) -> None:
    async with talk() as it:
        await it.peer.send(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % text.encode())
        assert await it.peer.line() == b'{"jsonrpc":"2.0","result":{"pong":true},"id":%b}' % text.encode()


def _size(app: SmallApp, params: Mapping[str, object]) -> Answer:
    return Answer({"size": len(str(params["text"])), "tail": str(params["text"])[-3:]})


async def test_a_line_of_40_megabytes() -> None:
    async with talk({"size": _size}) as it:
        text = "x" * 40_000_000 + "\u2028\ud800y"
        (answer,) = await it.peer.answers_to(request(1, "size", {"text": text}))
        assert answer["result"] == {"size": len(text), "tail": "\u2028\ufffdy"}


async def test_a_line_beyond_the_limit_is_told_once_and_skipped() -> None:
    async with talk() as it:
        answers = await it.peer.answers_to(b'{"jsonrpc":"2.0","id":1,"x":"' + b"x" * MAX_LINE + b'"}\n')
        assert brief(answers) == [(None, -32600)]


async def test_one_byte_at_a_time() -> None:
    async with talk({"size": _size}) as it:
        line = json.dumps(request(1, "size", {"text": "añ\u2028b"}), ensure_ascii=False).encode() + b"\r\n"
        pieces = [bytes([byte]) for byte in line]
        (answer,) = await it.peer.answers_to(*pieces)
        assert answer["result"] == {"size": 4, "tail": "ñ\u2028b"}


# ---------------------------------------------------------------- initialize


async def test_nothing_is_answered_before_initialize() -> None:
    called: list[object] = []
    async with talk({"note": lambda app, params: called.append(params)}, greet=False) as it:
        await it.peer.send(
            request(1, "ping"), request(2, "foo"), notification("note"), HELLO, request(3, "ping")
        )
        answers = [await it.peer.read() for _ in range(4)]
        assert brief(answers) == [(1, -32600), (2, -32600), ("hello", None), (3, None)]
        assert called == []
        assert it.app.greeted == [{"protocolVersion": 1}]


async def test_a_bad_initialize_does_not_count() -> None:
    async with talk(greet=False) as it:
        await it.peer.send(request(1, "initialize", {"protocolVersion": "1"}), request(2, "ping"))
        assert brief([await it.peer.read(), await it.peer.read()]) == [(1, -32602), (2, -32600)]
        assert it.app.greeted == []


async def test_initialize_again_only_without_a_session() -> None:
    async with talk() as it:
        assert brief(await it.peer.answers_to(HELLO)) == [("hello", None)]
        it.app.sessions = True
        assert brief(await it.peer.answers_to(HELLO)) == [("hello", -32600)]
        assert len(it.app.greeted) == 2


async def test_a_greeting_that_was_answered_before() -> None:
    rest = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,'
    async with talk(greet=False, first=Hello({"protocolVersion": 1}, rest)) as it:
        await it.peer.send(b'"method":"ping"}\n')
        assert brief([await it.peer.read(), await it.peer.read()]) == [(1, None), (2, None)]
        assert it.app.greeted == [{"protocolVersion": 1}]


async def test_bytes_that_were_read_before_without_an_answer() -> None:
    async with talk(greet=False, first=Hello(rest=json.dumps(HELLO).encode() + b"\n")) as it:
        assert (await it.peer.read())["result"] == initialize_result({"protocolVersion": 1})


# ---------------------------------------------------------------- order


async def test_handlers_run_in_the_order_of_arrival() -> None:
    def prompt(app: SmallApp, params: Mapping[str, object]) -> Later:
        app.log.append("prompt")
        return Later(lambda: _value("end"))

    def cancel(app: SmallApp, params: Mapping[str, object]) -> None:
        app.log.append("cancel")

    async with talk({"prompt": prompt, "cancel": cancel}) as it:
        await it.peer.answers_to(*[request(1, "prompt"), notification("cancel")] * 3)
        assert it.app.log == ["prompt", "cancel"] * 3


async def _value(value: object) -> object:
    await trio.lowlevel.checkpoint()
    return value


@pytest.mark.parametrize("later", [False, True])
async def test_what_follows_an_answer_is_sent_after_it(later: bool) -> None:
    async with talk() as it:

        async def follow() -> None:
            await it.connection.notify("followed", {})

        def new(app: SmallApp, params: Mapping[str, object]) -> Answer | Later:
            if not later:
                return Answer({}, follow)

            async def run() -> object:
                await it.connection.notify("before", {})
                return {}

            return Later(run, follow)

        it.methods["new"] = new
        await it.peer.send(request(1, "new"))
        seen = [await it.peer.read() for _ in range(3 if later else 2)]
        assert [one.get("method", "answer") for one in seen] == ["before"] * later + ["answer", "followed"]


async def test_requests_are_worked_on_at_the_same_time() -> None:
    def wait(app: SmallApp, params: Mapping[str, object]) -> Later:
        async def run() -> object:
            await app.gate.wait()
            return {}

        return Later(run)

    def open_gate(app: SmallApp, params: Mapping[str, object]) -> None:
        app.gate.set()

    async with talk({"wait": wait, "open": open_gate}) as it:
        assert await it.peer.answers_to(request(1, "wait"), request(2, "wait")) == []
        await it.peer.send(notification("open"))
        assert {(await it.peer.read())["id"], (await it.peer.read())["id"]} == {1, 2}


async def test_a_failure_in_what_follows_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def follow() -> None:
        raise OSError

    async with talk({"new": lambda app, params: Answer({}, follow)}) as it:
        assert brief(await it.peer.answers_to(request(1, "new"))) == [(1, None)]
        assert brief(await it.peer.answers_to(request(2, "new"))) == [(2, None)]
    assert "what follows the answer to new failed" in caplog.text


async def test_what_cannot_be_sent_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with talk({"odd": lambda app, params: Answer({"value": {1}})}) as it:
        it.connection.notify_nowait("odd", {"value": object()})
        await it.connection.notify("long", {"text": "x" * (11 * 1024 * 1024)})
        assert brief(await it.peer.answers_to(request(1, "odd"))) == [(1, -32603)]
    assert "a notification odd was dropped" in caplog.text
    assert "a notification long was dropped" in caplog.text


# ---------------------------------------------------------------- giving up


def _hang(app: SmallApp, params: Mapping[str, object]) -> Later:
    async def run() -> object:
        try:
            await trio.sleep_forever()
        finally:
            app.log.append("stopped")

    return Later(run)


def _prompt(app: SmallApp, params: Mapping[str, object]) -> Later:
    async def run() -> object:
        await app.gate.wait()
        return {"stopReason": "cancelled"}

    return Later(run, cancel=app.gate.set)


@pytest.mark.parametrize("text", ["7", '"7"', "null", str(2**70), "7.5"])
async def test_a_request_that_is_given_up(text: str) -> None:
    request_id = text.encode()
    async with talk({"hang": _hang}) as it:
        await it.peer.send(b'{"jsonrpc":"2.0","id":%b,"method":"hang"}\n' % request_id)
        other = b'"other"' if text == "7" else b"7"
        cancel = b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}\n'
        assert await it.peer.answers_to(cancel % other) == []
        assert it.app.log == []
        await it.peer.send(cancel % request_id)
        line = await it.peer.line()
        assert line.endswith(b'"id":%b}' % request_id)
        assert json.loads(line)["error"]["code"] == -32800
        assert it.app.log == ["stopped"]
        # answered, and known no more
        assert await it.peer.answers_to(cancel % request_id) == []


async def test_a_prompt_that_is_given_up_ends_by_itself() -> None:
    async with talk({"prompt": _prompt}) as it:
        await it.peer.send(request(7, "prompt"), notification("$/cancel_request", {"requestId": 7}))
        assert (await it.peer.read())["result"] == {"stopReason": "cancelled"}


async def test_a_failure_after_giving_up_is_a_cancellation() -> None:
    def hang(app: SmallApp, params: Mapping[str, object]) -> Later:
        async def run() -> object:
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                raise OSError from None

        return Later(run)

    async with talk({"hang": hang}) as it:
        assert await it.peer.answers_to(request(7, "hang")) == []
        await it.peer.send(notification("$/cancel_request", {"requestId": 7}))
        assert brief([await it.peer.read()]) == [(7, -32800)]


async def test_a_hook_that_fails_does_not_keep_the_request_open() -> None:
    def hang(app: SmallApp, params: Mapping[str, object]) -> Later:
        def cancel() -> None:
            raise OSError

        return Later(trio.sleep_forever, cancel=cancel)

    async with talk({"hang": hang}) as it:
        await it.peer.send(request(7, "hang"), notification("$/cancel_request", {"requestId": 7}))
        assert brief([await it.peer.read()]) == [(7, -32800)]


async def test_an_open_id_may_not_be_used_again() -> None:
    async with talk({"prompt": _prompt}) as it:
        await it.peer.send(
            request(1, "prompt"), request(1, "ping"), request("1", "ping"), request(True, "ping")
        )
        assert brief([await it.peer.read() for _ in range(3)]) == [(1, -32600), ("1", None), (None, -32600)]
        it.app.gate.set()
        assert brief([await it.peer.read()]) == [(1, None)]
        assert brief(await it.peer.answers_to(request(1, "ping"))) == [(1, None)]
