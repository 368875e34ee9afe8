"""Params of setting a session's mode. Knows no mode."""

from schemas.base import WireModel


class SetModeParams(WireModel):
    """Params of `session/set_mode`."""

    session_id: str
    mode_id: str
