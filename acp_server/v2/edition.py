"""What a connection that speaks ACP v2 knows beside its app: its client, where sessions stand, the login."""

from collections import defaultdict
from collections.abc import Mapping

from acp_server.app import App
from acp_server.client import Wire
from acp_server.config.settings import SessionConfig
from acp_server.v2.client import V2Client
from acp_server.v2.standing import Standing
from acp_server.wire_options import wire_options
from runtime.errors import AuthRequired
from schemas.acp import initialize, v2


class SecondEdition:
    """ACP v2 on one connection. logged_out: the client said so, and has not logged in since."""

    def __init__(self) -> None:
        self.logged_out = False
        self.standings: defaultdict[str, Standing] = defaultdict(Standing)
        self._client: V2Client | None = None

    @property
    def client(self) -> V2Client:
        """The client, once a session was opened."""
        if self._client is None:
            raise RuntimeError("no session was opened on this connection")
        return self._client

    def make_client(self, wire: Wire, params: Mapping[str, object], config: SessionConfig) -> V2Client:
        """See `client.Edition`. Notices and compactions need no capability here."""
        offered = v2.InitializeParams.model_validate(params).capabilities
        taken = initialize.ClientCapabilities(
            session=initialize.ClientSessionCapabilities.model_construct(notices=True, compaction=True),
            elicitation=offered.elicitation,
            meta=offered.meta,
        )
        options = wire_options(
            taken,
            history_trimmed=config.acp.history_trimmed,
            visible_trim_notice=config.acp.visible_trim_notice,
        )
        self._client = V2Client(wire, options, self.standings)
        return self._client

    def require_login(self) -> None:
        """Raises AuthRequired after a logout."""
        if self.logged_out:
            raise AuthRequired("This client logged out; auth/login comes first.")


def edition_of(app: App) -> SecondEdition:
    """The connection's; there is one as soon as v2 methods are answered."""
    assert isinstance(app.edition, SecondEdition)
    return app.edition
