"""ACP v2: its `initialize`, and the table of methods that a client which speaks it is answered by.

Loaded only for a client that asks for it, where the settings allow it. `initialize` itself is in
`versions`.
"""

from collections.abc import Mapping

from acp_server.acp.capabilities import auth_methods
from acp_server.acp.params import parse
from acp_server.acp.trim_updates import EXTENSION_METHOD, META_KEY
from acp_server.app.app import App
from acp_server.methods.v1 import prompt_and_options as first_prompting
from acp_server.methods.v1 import sessions
from acp_server.methods.v2 import methods
from acp_server.methods.v2.client import SecondEdition
from acp_server.methods.v2.updates import TRIM_KIND
from acp_server.wire.dispatch import Handler
from schemas.acp.v2 import InitializeParams
from schemas.version import __version__

METHODS: Mapping[str, Handler[App]] = {
    "auth/login": methods.login,
    "auth/logout": methods.logout,
    "session/new": methods.new,
    "session/resume": methods.resume,
    "session/list": methods.list_,
    "session/close": methods.close,
    "session/delete": sessions.delete,
    "session/set_config_option": methods.set_config_option,
    "session/prompt": methods.prompt,
    "session/cancel": first_prompting.cancel,
}

VERSION = 2


def initialize(app: App, params: Mapping[str, object]) -> dict[str, object]:
    """The answer; from now on v2 is spoken. Raises InvalidParams, for a client without a name too."""
    asked = parse(InitializeParams, params)
    terminal = asked.capabilities.auth is not None and asked.capabilities.auth.terminal
    app.edition = SecondEdition()
    return result(terminal=terminal)


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
