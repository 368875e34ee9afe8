"""What of a setting's value may be shown. Pure."""

import re

from acp_server.config.keys import Key

HIDDEN = "(hidden)"
_TELLING = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=//)[^/@]*@")
_QUERY = re.compile(r"\?.*")


def showable(key: Key, value: object) -> object:
    """The value with everything left out that may give access to something.

    Headers never show; options show unless their name tells of a secret; an address loses its user,
    password and query.
    """
    match key:
        case ("providers", _, "headers", *_):
            return HIDDEN
        case ("providers", _, "base_url") if isinstance(value, str):
            return _QUERY.sub(f"?{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", value))
        case ("providers", _, "options", *names):
            return _masked(value, any(_TELLING.search(name) for name in names))
        case _:
            return value


def _masked(value: object, telling: bool) -> object:
    if isinstance(value, dict):
        return {name: _masked(inner, telling or bool(_TELLING.search(name))) for name, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, telling) for inner in value]
    return HIDDEN if telling and isinstance(value, str) else value
