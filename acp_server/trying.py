"""Whether a model answers: one short question, given up as soon as anything comes back. Knows no provider."""

import trio

from runtime.errors import ProviderError, ProviderErrorKind
from runtime.model import ModelRequest, Segment
from runtime.ports import Provider
from runtime.rows import Row

SECONDS = 60.0
QUESTION = "Reply with the word OK."


async def try_once(provider: Provider, model: str) -> None:
    """Ask, and believe the first part of an answer. Raises AuthRequired and ProviderError."""
    request = ModelRequest(model, (Segment((Row("user", QUESTION),)),))
    with trio.move_on_after(SECONDS):
        async with provider.stream(request) as batches:
            async for batch in batches:
                if batch:
                    return
    text = f'"{provider.name}" did not answer within {SECONDS:.0f} seconds.'
    raise ProviderError(text, kind=ProviderErrorKind.TIMEOUT, retryable=True)
