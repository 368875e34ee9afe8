"""What of a setting's value may be shown. Pure."""

import re

from acp_server.config.keys import Key
from runtime.store.address import is_address, masked

HIDDEN = "(hidden)"
_TELLING = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=//)[^/@]*@")
_QUERY = re.compile(r"\?.*")


def showable(key: Key, value: object) -> object:
    """The value with everything left out that may give access to something.

    Headers and variables never show; options show unless their name tells of a secret; an address loses its
    user, password and query.
    """
    match key:
        case ("store",) if isinstance(value, str) and is_address(value):
            return masked(value)
        case ("providers", _, "headers", *_):
            return HIDDEN
        case ("providers", _, "base_url") if isinstance(value, str):
            return _QUERY.sub(f"?{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", value))
        case ("providers", _, "options", *names):
            return _masked(value, any(_TELLING.search(name) for name in names))
        case ("mcp_servers", _, "env" | "headers", *_):
            return HIDDEN
        case ("mcp_servers", _, "url") if isinstance(value, str):
            return _QUERY.sub(f"?{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", value))
        case ("mcp_servers", _, "args") if isinstance(value, list):
            return _arguments(value)
        case _:
            return value


def _arguments(values: list[object]) -> list[object]:
    """A command line without the values of telling options, `--token=x` or `--token x`."""
    shown: list[object] = []
    telling = False
    for value in map(str, values):
        name, equals, _ = value.partition("=")
        hides = telling or (bool(equals) and bool(_TELLING.search(name)))
        shown.append(HIDDEN if telling else f"{name}={HIDDEN}" if hides else value)
        telling = not equals and value.startswith("-") and bool(_TELLING.search(value))
    return shown


def _masked(value: object, telling: bool) -> object:
    if isinstance(value, dict):
        return {name: _masked(inner, telling or bool(_TELLING.search(name))) for name, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, telling) for inner in value]
    return HIDDEN if telling and isinstance(value, str) else value
