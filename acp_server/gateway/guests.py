"""A connection as the sessions of the gateway see it. Knows neither sockets nor the protocol."""

from typing import Protocol

from runtime.events import Event
from runtime.ports import Client


class Guest(Protocol):
    """Someone who has sessions open. client: who is asked. gone: nobody is there any more."""

    gone: bool
    client: Client

    async def tell(self, session_id: str, event: Event) -> None:
        """Tell what happened. Waits while the client is far behind."""
        ...

    def let_go(self, session_id: str) -> None:
        """Forget a session; what happens there is not told any more."""
        ...
