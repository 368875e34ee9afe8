"""Params of `authenticate`. Knows no method of logging in."""

from schemas.base import WireModel


class AuthenticateParams(WireModel):
    """Params of `authenticate`: one of the ids that `initialize` named."""

    method_id: str
