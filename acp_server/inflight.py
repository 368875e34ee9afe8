"""The client's requests that are being worked on: by id, so that they can be given up. Knows no method."""

import logging
from dataclasses import dataclass, field

import trio

from acp_server.dispatch import Answer, Failure, Later, Outcome, finish
from acp_server.errors import CANCELLED
from acp_server.messages import Id, IdKey, Request, id_key

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
