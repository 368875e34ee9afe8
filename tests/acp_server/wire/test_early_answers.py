"""Requests that are answered while their work goes on, and a table of methods that a greeting changes."""

from collections.abc import Callable, Mapping

import trio

from acp_server.wire.dispatch import Answer, Later
from tests.acp_server.wire.wire_peer import SmallApp, talk


def request(request_id: object, method: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method}


class Early:
    """Work that answers twice, goes on until it is let go or asked to end, and fails then."""

    def __init__(self) -> None:
        self.app = SmallApp()
        self.answered = trio.Event()
        self.cancelled = 0

    def method(self, app: SmallApp, params: Mapping[str, object]) -> Later:
        self.app = app
        return Later(self.run, cancel=self.cancel, bind=self.bind)

    def bind(self, answer: Callable[[object], None]) -> None:
        self.answer = answer

    def cancel(self) -> None:
        self.cancelled += 1
        self.app.gate.set()

    async def run(self) -> object:
        self.answer({"early": True})
        self.answer({"early": "again"})
        self.answered.set()
        await self.app.gate.wait()
        self.app.log.append("over")
        raise ValueError("nobody hears of this")


async def test_an_answer_before_the_end_is_the_only_one():
    work = Early()
    async with talk({"work": work.method}) as it:
        assert await it.peer.answers_to(request(1, "work")) == [
            {"jsonrpc": "2.0", "result": {"early": True}, "id": 1}
        ]
        it.app.gate.set()
        assert await it.peer.answers_to(request(2, "none")) == [
            {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": 2}
        ]
    assert (it.app.log, work.cancelled) == (["over"], 0)


async def test_its_id_is_free_and_cannot_give_it_up_any_more():
    work = Early()
    async with talk({"work": work.method}) as it:
        await it.peer.answers_to(request(1, "work"))
        cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}
        assert await it.peer.answers_to(cancel, request(1, "ping")) == [
            {"jsonrpc": "2.0", "result": {"pong": True}, "id": 1}
        ]
        assert work.cancelled == 0
        it.app.gate.set()


async def test_the_end_of_the_connection_ends_it():
    work = Early()
    async with talk({"work": work.method}) as it:
        await it.peer.answers_to(request(1, "work"))
    assert (it.app.log, work.cancelled) == (["over"], 1)


async def test_a_greeting_may_change_what_is_answered():
    def second(app: SmallApp, params: Mapping[str, object]) -> Answer:
        return Answer({"second": True})

    def greets(app: SmallApp, params: Mapping[str, object]) -> Answer:
        return Answer({}, methods={"second": second, "ping": lambda app, params: Answer({"pong": True})})

    async with talk({"initialize": greets, "first": second}, greet=False) as it:
        await it.peer.answers_to(request(1, "initialize"))
        answers = await it.peer.answers_to(request(2, "first"), request(3, "second"))
    assert [sorted(answer) for answer in answers] == [["error", "id", "jsonrpc"], ["id", "jsonrpc", "result"]]
