"""Our requests to the client: every kind of answer, none, a late one, and giving up."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from acp_server.wire.errors import ClientCallError
from tests.acp_server.wire.wire_peer import Talk, talk


async def ask(it: Talk, outcomes: list[object]) -> None:
    try:
        outcomes.append(await it.connection.call("ask", {"n": 1}))
    except ClientCallError as error:
        outcomes.append((error.code, error.message, error.data))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"result": {"content": "x"}}, {"content": "x"}),
        ({"result": None}, None),
        ({"result": {"a": 1}, "error": None}, {"a": 1}),
        ({"error": {"code": -32601, "message": "no", "data": [1]}}, (-32601, "no", [1])),
        ({"error": {"code": "x"}}, (-32603, "the client gave no reason", None)),
        ({"error": "broken"}, (-32603, "the client gave no reason", None)),
    ],
)
async def test_answers(answer: dict[str, object], outcome: object) -> None:
    async with talk() as it, trio.open_nursery() as nursery:
        outcomes: list[object] = []
        nursery.start_soon(ask, it, outcomes)
        asked = await it.peer.read()
        assert asked == {"jsonrpc": "2.0", "id": 1, "method": "ask", "params": {"n": 1}}
        # equal to 1 in Python, and other ids in JSON
        wrong = [{"jsonrpc": "2.0", "id": other, "result": "wrong"} for other in ("1", True, 1.0, None, 2)]
        assert await it.peer.answers_to(*wrong) == []
        assert outcomes == []
        await it.peer.answers_to({"jsonrpc": "2.0", "id": 1} | answer)
        await wait_all_tasks_blocked()
        assert outcomes == [outcome]


async def test_calls_have_ids_of_their_own_and_may_be_answered_in_any_order() -> None:
    async with talk() as it, trio.open_nursery() as nursery:
        results: dict[int, object] = {}

        async def call(number: int) -> None:
            results[number] = await it.connection.call("ask", {"n": number})

        for number in range(5):
            nursery.start_soon(call, number)
        asked = [await it.peer.read() for _ in range(5)]
        assert sorted(int(str(one["id"])) for one in asked) == [1, 2, 3, 4, 5]
        for one in reversed(asked):
            await it.peer.send({"jsonrpc": "2.0", "id": one["id"], "result": one["params"]})
        await it.peer.answers_to()
        await wait_all_tasks_blocked()
        assert results == {number: {"n": number} for number in range(5)}


async def test_a_caller_that_gives_up_tells_the_client_and_a_late_answer_is_dropped() -> None:
    async with talk() as it:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, it, [])
                await it.peer.read()
                scope.cancel()
        assert await it.peer.read() == {
            "jsonrpc": "2.0",
            "method": "$/cancel_request",
            "params": {"requestId": 1},
        }
        late = {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert await it.peer.answers_to(late, late) == []


async def test_the_end_of_the_connection_fails_open_calls_and_later_ones() -> None:
    outcomes: list[object] = []
    async with trio.open_nursery() as nursery, talk() as it:
        nursery.start_soon(ask, it, outcomes)
        await it.peer.read()
        it.connection.stop()
        await it.done.wait()
        nursery.start_soon(ask, it, outcomes)
    assert outcomes == [(-32603, "the connection has ended", None)] * 2


async def test_a_request_that_cannot_be_sent() -> None:
    async with talk() as it:
        with pytest.raises(ClientCallError, match="cannot be sent"):
            await it.connection.call("ask", {"text": "x" * (11 * 1024 * 1024)})
        assert await it.peer.answers_to() == []


async def test_what_an_error_says_is_readable() -> None:
    assert str(ClientCallError(-32601, "no")) == "no (-32601)"
