"""`initialize`: which version of ACP a connection speaks, and the table of methods that goes with it."""

from collections.abc import Mapping
from pathlib import Path

from acp_server.acp.capabilities import PROTOCOL_VERSION, initialize_result
from acp_server.app.app import App
from acp_server.config.paths import here
from acp_server.methods.v1 import table
from acp_server.wire.dispatch import Answer, Handler
from runtime.values.errors import ConfigError


def initialize(app: App, params: Mapping[str, object]) -> Answer:
    """The same answer as the one that is given before the heavy imports; version 2 where it is asked for and
    on.
    """
    result = initialize_result(params)
    asked = params["protocolVersion"]
    if isinstance(asked, int) and asked > PROTOCOL_VERSION and offers_v2(app):
        # A draft that few ask for: nobody else waits for its modules.
        from acp_server.methods.v2.table import METHODS as DRAFT
        from acp_server.methods.v2.table import initialize as begin_draft

        return Answer(begin_draft(app, params), methods={"initialize": initialize, **DRAFT})
    if app.edition is None:
        return Answer(result)
    app.edition = None
    return Answer(result, methods=METHODS)


def offers_v2(app: App) -> bool:
    """Whether the settings allow the draft of ACP v2. Settings that cannot be read allow nothing."""
    try:
        return app.config(Path(here())).acp.v2
    except ConfigError:
        return False


METHODS: Mapping[str, Handler[App]] = {"initialize": initialize, **table.METHODS}
"""What a connection is answered from its first message on."""
