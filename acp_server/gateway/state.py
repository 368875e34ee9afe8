"""What all parts of one gateway share, as one value. Knows no route and does nothing itself."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acp_server.gateway.wires import Wires

if TYPE_CHECKING:  # each of them takes this value, or is told of it
    import trio

    from acp_server.config.settings import GatewaySettings
    from acp_server.gateway.feed import Feed
    from acp_server.gateway.hub import Hub
    from acp_server.gateway.shared import SharedApp


@dataclass(frozen=True, slots=True)
class GatewayState:
    """app: the process's sessions and stores. hub: who has which session open over `/acp`. feed: all events.

    settings: `[gateway]`. token: what every request must show. nursery: ends with the gateway; what runs
    longer than a request is started here. wires: the sockets.
    """

    app: "SharedApp"
    hub: "Hub"
    feed: "Feed"
    settings: "GatewaySettings"
    token: str
    nursery: "trio.Nursery"
    wires: Wires = field(default_factory=Wires)
