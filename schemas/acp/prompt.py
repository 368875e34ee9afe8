"""Params of a prompt turn: its start and its cancellation. Knows nothing of the turn."""

from typing import Annotated

from pydantic import FailFast

from schemas.acp.content import ContentBlock
from schemas.base import WireModel


class PromptParams(WireModel):
    """Params of `session/prompt`. The list may be empty."""

    session_id: str
    prompt: Annotated[tuple[ContentBlock, ...], FailFast()]


class CancelParams(WireModel):
    """Params of `session/cancel` (a notification)."""

    session_id: str
