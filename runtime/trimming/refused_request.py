"""After a refusal that is about a request's size, or may be: what is asked instead, how often, what is told.

Sends nothing. A list of wordings alone is no defence: a refusal in words that nobody knows would close a
session for good. So one that speaks of sizes, or that comes again where earlier requests were taken, is tried
once with less.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from runtime.history.request.compose import Composed
from runtime.history.request.recovery import LESS_BY_HAND, too_long
from runtime.history.rows.overflow import (
    is_context_overflow,
    may_be_too_large,
    names_other_cause,
    stated_sizes,
)
from runtime.history.rows.stated_sizes import Sizes
from runtime.transcript.recorder import Recorder
from runtime.trimming.model_context import HistoryKeeper
from runtime.values.errors import ContextWindowExceeded, ProviderError, ProviderErrorKind
from runtime.values.events import Event, Noticed

SHARES: tuple[float | None, ...] = (None, 0.5, 0.0)
"""What each further request for one reply aims at, of the one before: two thirds, half, then nothing that may
go. So a reply costs four calls at most, and the last of them is as small as one can be.
"""
HINT = f"If it is the length of the conversation: {LESS_BY_HAND}"

_PLAIN = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class TooLong:
    """A refusal that a smaller request follows. share: of the refused one, None for two thirds. certain: the
    provider's words leave no doubt.
    """

    sizes: Sizes
    share: float | None
    certain: bool


class RefusedRequests:
    """The refusals of one turn."""

    def __init__(
        self, keeper: HistoryKeeper, recorder: Recorder, emit: Callable[[Event], Awaitable[None]]
    ) -> None:
        self._keeper = keeper
        self._recorder = recorder
        self._emit = emit
        self._tries = 0
        self._guessed = False

    def begin(self) -> None:
        """Another reply is asked for."""
        self._tries = 0

    def judge(self, error: ProviderError) -> TooLong | None:
        """Whether less is asked for after this. To be called once for each refusal, since it is counted."""
        if is_context_overflow(error):
            share = SHARES[self._tries] if self._tries < len(SHARES) else None
            return TooLong(stated_sizes(error), share, certain=True)
        again = is_plain(error) and self._keeper.refusals.add()
        if self._guessed or not (again or may_be_too_large(error)):
            return None
        self._guessed = True
        return TooLong(Sizes(), None, certain=False)

    async def smaller(
        self, refusal: TooLong, error: ProviderError, refused: Composed, number: int, *, with_tools: bool
    ) -> Composed:
        """What is asked in place of the refused request, which is told.

        Where there is nothing smaller it raises what ends the turn: ContextWindowExceeded, or the provider's
        error with what a person can do.
        """
        self._tries += 1
        if refusal.certain and self._tries > len(SHARES):
            raise too_long(refused, self._keeper.setup.profile, refusal.sizes)
        try:
            composed = await self._keeper.recover(
                refusal.sizes, refused, self._recorder, number, with_tools=with_tools, share=refusal.share
            )
        except ContextWindowExceeded:
            if refusal.certain:
                raise
            raise with_hint(error) from error
        await self._tell(refusal, error, composed)
        return composed

    def end(self, error: ProviderError) -> None:
        """The error ends the turn. Where it may be about the length, raise it with what a person can do."""
        stuck = is_plain(error) and self._keeper.refusals.repeated
        if stuck or may_be_too_large(error):
            raise with_hint(error) from error

    async def _tell(self, refusal: TooLong, error: ProviderError, composed: Composed) -> None:
        """Say what the notice of a trim does not."""
        if not refusal.certain:
            title, text = "Asking again with less of the conversation", "It may be too long for the model."
        elif not composed.trims:
            title = "Asking again with less room for the answer"
            text = f"It may now have {composed.max_output_tokens} tokens."
        else:
            return
        await self._emit(Noticed("info", title, f"{error.message} {text}"))


def is_plain(error: ProviderError) -> bool:
    """Whether a request was refused without a cause that a shorter conversation would not change."""
    refused = error.kind is ProviderErrorKind.BAD_REQUEST and error.status in _PLAIN
    return refused and not names_other_cause(error) and not is_context_overflow(error)


def with_hint(error: ProviderError) -> ProviderError:
    """The error with what a person can do when it is about the length."""
    return ProviderError(
        f"{error.message} {HINT}",
        kind=error.kind,
        retryable=error.retryable,
        status=error.status,
        code=error.code,
        detail=error.detail,
        retry_after=error.retry_after,
    )
