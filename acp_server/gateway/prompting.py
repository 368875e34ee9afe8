"""A prompt that came over the gateway: its turn runs on when the connection that sent it goes away.

Also says which connection a task works for: questions of a turn go to the one that prompted.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

import trio

from acp_server.gateway.guests import Guest

CANCELLED = {"stopReason": "cancelled"}


@dataclass(slots=True, eq=False)
class Asked:
    """One prompt on its way. run: the turn, to its response. stop: ends that turn, running or waiting.

    over: called once when it is over. turn_id: '' until the turn begins.
    """

    guest: Guest
    session_id: str
    run: Callable[[], Awaitable[object]]
    stop: Callable[[], None]
    over: Callable[["Asked"], None]
    turn_id: str = ""
    done: trio.Event = field(default_factory=trio.Event)
    _result: object = None
    _error: Exception | None = None

    async def work(self) -> None:
        """Run the turn in a task of its own, which outlives the connection."""
        PROMPT.set(self)
        try:
            self._result = await self.run()
        except Exception as error:  # noqa: BLE001 - whoever waits for the turn raises it
            self._error = error
        finally:
            self.over(self)
            self.done.set()

    async def response(self) -> object:
        """What the turn gave, for the one who asked. Raises what ended it."""
        await self.done.wait()
        if self._error is not None:
            raise self._error
        return CANCELLED if self._result is None else self._result

    def give_up(self) -> None:
        """Stop it for a client that is there; when it has gone, only nobody waits any more."""
        if self.guest.gone:
            self.done.set()
        else:
            self.stop()


PROMPT: ContextVar[Asked | None] = ContextVar("prompt", default=None)
"""The prompt that the current task, or the one that started it, works for."""
