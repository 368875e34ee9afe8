"""Params of what happens in an open session: prompt, cancel, a mode or an option set.

The models of content blocks are loaded with the first prompt.
"""

from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Strict

from schemas.base import WireModel

if TYPE_CHECKING:
    from schemas.acp.content import ContentBlock

    ContentBlocks = tuple[ContentBlock, ...]
else:

    def _blocks(value: object) -> object:
        from schemas.acp.content import BLOCKS

        return BLOCKS.validate_python(value)

    ContentBlocks = Annotated[tuple[object, ...], BeforeValidator(_blocks)]


class PromptParams(WireModel):
    """Params of `session/prompt`. The list may be empty."""

    session_id: str
    prompt: ContentBlocks


class CancelParams(WireModel):
    """Params of `session/cancel` (a notification)."""

    session_id: str


class SetModeParams(WireModel):
    """Params of `session/set_mode`."""

    session_id: str
    mode_id: str


class SetConfigOptionParams(WireModel):
    """Params of `session/set_config_option`. Every option here is a choice by id, so `value` is text."""

    session_id: str
    config_id: str
    value: Annotated[str, Strict()]
