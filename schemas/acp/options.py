"""Params of setting a session's config option. Knows no option."""

from typing import Annotated

from pydantic import Strict

from schemas.base import WireModel


class SetConfigOptionParams(WireModel):
    """Params of `session/set_config_option`. Every option here is a choice by id, so `value` is text."""

    session_id: str
    config_id: str
    value: Annotated[str, Strict()]
