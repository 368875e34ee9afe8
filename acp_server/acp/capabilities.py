"""What this agent offers: the answer to `initialize`. Knows nothing of later messages.

Only light modules of the standard library are imported (`typing` is none, it doubles the time): an editor
waits for this answer at start-up.
The method table uses the same `initialize_result`, so that both ways give the same bytes.
"""

import os
from collections.abc import Mapping

from runtime.values.errors import InvalidParams
from schemas.version import __version__

PROTOCOL_VERSION = 1
MAX_VERSION = 0xFFFF
UNSTABLE_VARIABLE = "WHOLETURN_UNSTABLE"
"""Set to 1, it switches the unstable parts of ACP on for every client."""
METHOD_ID = "config"
"""The id of the way to log in that the agent carries out itself."""


class BadInitialize(InvalidParams):
    """Parameters of `initialize` that cannot be taken."""


def initialize_result(params: object) -> dict[str, object]:
    """The result of `initialize`. Raises BadInitialize.

    Any version is answered with the one that is spoken here; the client decides whether to go on.
    Optional parts of the parameters are not judged: a bad capability counts as not given.
    """
    version = params.get("protocolVersion") if isinstance(params, Mapping) else None
    if type(version) is not int or not 0 <= version <= MAX_VERSION:
        raise BadInitialize(f"protocolVersion must be an integer from 0 to {MAX_VERSION}")
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": session_capabilities(params),
            "_meta": {
                "wholeturn": {
                    "historyTrimmed": {
                        "sessionUpdate": "history_trimmed",
                        "usageMeta": "wholeturn/history_trimmed",
                        "extNotification": "_wholeturn/history_trimmed",
                    }
                }
            },
        },
        "authMethods": auth_methods(params),
        "agentInfo": {"name": "wholeturn", "title": "Wholeturn", "version": __version__},
    }


def auth_methods(params: object) -> list[dict[str, object]]:
    """The ways to log in: always one that the agent carries out, one for a terminal where there is one."""
    methods: list[dict[str, object]] = [
        {
            "id": METHOD_ID,
            "name": "Configured provider",
            "description": "Asks the configured model with its key, out of the environment or as stored.",
        }
    ]
    if said(params, "clientCapabilities", "auth", "terminal") is True:
        methods.append(
            {
                "type": "terminal",
                "id": "setup",
                "name": "Set up in a terminal",
                "description": "Asks for a provider, its key and a model, and tries them.",
                "args": ["setup"],
            }
        )
    return methods


def said(params: object, *keys: str) -> object:
    """What stands at a path of the parameters; None for nothing."""
    here = params
    for key in keys:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def session_capabilities(params: object) -> dict[str, object]:
    """The optional session methods, just those that will be answered."""
    offered = ("list", "resume", "close", "delete", "additionalDirectories")
    return {name: {} for name in (*offered, *(("fork",) if unstable_wanted(params) else ()))}


def unstable_wanted(params: object) -> bool:
    """Whether the parts of ACP that are not stable yet are on: by the client, or by a variable.

    The client says `clientCapabilities._meta.wholeturn.unstable: true`. A setting of the file would come too
    late: no file has been read when `initialize` is answered.
    """
    if os.environ.get(UNSTABLE_VARIABLE, "").lower() in ("1", "true"):
        return True
    return said(params, "clientCapabilities", "_meta", "wholeturn", "unstable") is True
