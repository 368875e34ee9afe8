"""When a refused request is sent again, and after how long: pure. Knows no HTTP client."""

from collections.abc import Callable

from runtime.errors import ProviderError, ProviderErrorKind

MAX_RETRIES = 2
MAX_WAIT = 20.0
"""Seconds. A provider that asks for more is not asked again: its error goes out, wait included."""
FIRST_WAIT = 0.5

_STATUSES = frozenset({408, 409, 429})
_KINDS = frozenset({ProviderErrorKind.UNREACHABLE, ProviderErrorKind.STREAM_DROPPED})


def retry_delay(error: ProviderError, attempt: int, random: Callable[[], float]) -> float | None:
    """Seconds to wait before the next try, None when there is none.

    attempt: 0 for the first failure. random: gives 0.0 <= x < 1.0; half of each wait is jitter,
    so that several sessions do not come back at the same moment.
    """
    if attempt >= MAX_RETRIES or not error.retryable or not _may_pass(error):
        return None
    if error.retry_after is not None:
        # Never before the stated time; a little after it, for the same reason as the jitter.
        return error.retry_after + random() * 0.25 if error.retry_after <= MAX_WAIT else None
    wait: float = FIRST_WAIT * 2**attempt
    return wait * (0.5 + random() / 2)


def _may_pass(error: ProviderError) -> bool:
    if error.status is None:
        # An idle time-out has cost minutes already, so it is not among these.
        return error.kind in _KINDS
    return error.status in _STATUSES or error.status >= 500
