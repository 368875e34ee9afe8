"""Requests that we send to the client, and their answers. Knows neither the stream nor any method.

Every call may be answered with an error, with null, late or never; the caller bounds it by a cancel scope.
"""

import itertools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import trio

from acp_server.errors import INTERNAL_ERROR, ClientCallError
from acp_server.messages import CANCEL_REQUEST, Reply, Unsendable, encode

logger = logging.getLogger("wholeturn.calls")

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
            logger.info("dropped an answer that nobody waits for: %s", _summary(reply))
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
