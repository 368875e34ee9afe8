"""`initialize` of ACP v2. Loaded only for a client that asks for it, where the settings allow it."""

from collections.abc import Mapping

from acp_server.app import App
from acp_server.dispatch import Answer
from acp_server.hello import auth_methods
from acp_server.inbound import parse
from acp_server.trim_updates import EXTENSION_METHOD, META_KEY
from acp_server.v2.edition import SecondEdition
from acp_server.v2.table import METHODS
from acp_server.v2.updates import TRIM_KIND
from schemas.acp.v2 import InitializeParams
from schemas.version import __version__

VERSION = 2


def initialize(app: App, params: Mapping[str, object]) -> Answer:
    """From this answer on the connection speaks v2. Raises InvalidParams, for a client without a name too."""
    asked = parse(InitializeParams, params)
    terminal = asked.capabilities.auth is not None and asked.capabilities.auth.terminal
    app.edition = SecondEdition()
    return Answer(result(terminal=terminal), methods=METHODS)


def result(*, terminal: bool) -> dict[str, object]:
    """What is offered. terminal: the client can run a way to log in that needs one."""
    return {
        "protocolVersion": VERSION,
        "info": {"name": "wholeturn", "title": "Wholeturn", "version": __version__},
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {},
                "additionalDirectories": {},
            },
            "_meta": {
                "wholeturn": {
                    "historyTrimmed": {
                        "sessionUpdate": TRIM_KIND,
                        "usageMeta": META_KEY,
                        "extNotification": EXTENSION_METHOD,
                    }
                }
            },
        },
        "authMethods": [_method(one) for one in _first_methods(terminal=terminal)],
    }


def _first_methods(*, terminal: bool) -> list[dict[str, object]]:
    return auth_methods({"clientCapabilities": {"auth": {"terminal": terminal}}})


def _method(first: Mapping[str, object]) -> dict[str, object]:
    """A way to log in, with a type always and its id under v2's name."""
    return {"type": "agent", **{"methodId" if key == "id" else key: value for key, value in first.items()}}
