"""Requests that are open, both ways: the client's that are being worked on, and ours that it has to answer.

The client's can be given up by their id. Ours may be answered with an error, with null, late or never; the
caller bounds them by a cancel scope. Knows neither the stream nor any method.
"""

import itertools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import trio

from acp_server.wire.dispatch import Answer, Failure, Later, Outcome, finish
from acp_server.wire.errors import CANCELLED, INTERNAL_ERROR, ClientCallError
from acp_server.wire.messages import CANCEL_REQUEST, Id, IdKey, Reply, Request, Unsendable, encode, id_key

logger = logging.getLogger("wholeturn.inflight")


@dataclass(slots=True, eq=False)
class Work:
    """One request's work. given_up: the client does not want it any more. answered: it has its response."""

    request: Request
    later: Later
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    given_up: bool = False
    answered: bool = False


class InFlight:
    """The table of open requests of one connection."""

    def __init__(self) -> None:
        self._open: dict[IdKey, Work] = {}
        self._answered: set[Work] = set()

    def __bool__(self) -> bool:
        """Whether any request is open."""
        return bool(self._open)

    def has(self, request_id: Id) -> bool:
        """Whether a request with this id is open. `1` and `"1"` are different."""
        return id_key(request_id) in self._open

    def add(self, request: Request, later: Later) -> Work:
        """Register work whose id is free."""
        work = self._open[id_key(request.id)] = Work(request, later)
        return work

    async def run(self, work: Work) -> Outcome:
        """Do the work; its id is free again on return, however that comes."""
        outcome: Outcome = Failure(CANCELLED)
        try:
            with work.scope:
                outcome = await finish(work.request.method, work.later)
        finally:
            self._forget(work)
        if work.given_up and not isinstance(outcome, Answer):
            return Failure(CANCELLED)
        return outcome

    def answered(self, work: Work) -> None:
        """It has its response and goes on: its id is free, and only the end of the connection ends it."""
        self._forget(work)
        work.answered = True
        self._answered.add(work)

    def give_up(self, request_id: Id) -> None:
        """The client does not want this any more. Unknown ids (it may just have been answered) do nothing."""
        work = self._open.get(id_key(request_id))
        if work is None:
            return
        work.given_up = True
        if not _ask_to_end(work):
            work.scope.cancel()

    def hang_up(self) -> None:
        """The connection ends: ask all that can be asked to come to an end by themselves."""
        for work in (*self._open.values(), *self._answered):
            _ask_to_end(work)

    def _forget(self, work: Work) -> None:
        if work.answered:
            self._answered.discard(work)
        else:
            del self._open[id_key(work.request.id)]


def _ask_to_end(work: Work) -> bool:
    if work.later.cancel is None:
        return False
    try:
        work.later.cancel()
    except Exception:
        logger.exception("cancelling %s failed", work.request.method)
        return False
    return True


calls_log = logging.getLogger("wholeturn.calls")

_SHOWN = 200


@dataclass(slots=True)
class _Slot:
    answered: trio.Event = field(default_factory=trio.Event)
    result: object = None
    error: ClientCallError | None = None


class Calls:
    """The calls of one connection. `put` queues a line for the client without waiting."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._ids = itertools.count(1)
        self._open: dict[int, _Slot] = {}
        self._over = False

    async def call(self, method: str, params: Mapping[str, object]) -> object:
        """The result as decoded. Raises ClientCallError.

        A caller that is cancelled sends `$/cancel_request` and forgets the call: a late answer is dropped.
        """
        if self._over:
            raise _gone()
        call_id, slot = next(self._ids), _Slot()
        self._put(_line({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}))
        self._open[call_id] = slot
        try:
            await slot.answered.wait()
        except trio.Cancelled:
            self._put(_line({"jsonrpc": "2.0", "method": CANCEL_REQUEST, "params": {"requestId": call_id}}))
            raise
        finally:
            self._open.pop(call_id, None)
        if slot.error is not None:
            raise slot.error
        return slot.result

    def settle(self, reply: Reply) -> None:
        """Hand an answer to its caller. One that nobody waits for is logged and dropped."""
        # Exactly an int: True and 1.0 equal 1, and would be taken for it.
        slot = self._open.pop(reply.id, None) if type(reply.id) is int else None
        if slot is None:
            calls_log.info("dropped an answer that nobody waits for: %s", _summary(reply))
            return
        slot.result = reply.result
        slot.error = None if reply.error is None else _call_error(reply.error)
        slot.answered.set()

    def hang_up(self) -> None:
        """The client cannot answer any more: all calls fail, and so do those to come."""
        self._over = True
        for slot in self._open.values():
            slot.error = _gone()
            slot.answered.set()


def _line(message: Mapping[str, object]) -> bytes:
    try:
        return encode(message)
    except Unsendable as refusal:
        raise ClientCallError(INTERNAL_ERROR, f"the request cannot be sent: {refusal}") from refusal


def _gone() -> ClientCallError:
    return ClientCallError(INTERNAL_ERROR, "the connection has ended")


def _call_error(error: object) -> ClientCallError:
    facts = error if isinstance(error, Mapping) else {}
    code, message = facts.get("code"), facts.get("message")
    return ClientCallError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) else "the client gave no reason",
        facts.get("data"),
    )


def _summary(reply: Reply) -> str:
    if reply.error is None:
        return "a result"
    return str(_call_error(reply.error))[:_SHOWN]
