"""When a refused request is sent again, after how long, and where: pure. Knows no HTTP client."""

import re
from collections.abc import Callable

from runtime.errors import ProviderError, ProviderErrorKind

MAX_RETRIES = 2
MAX_WAIT = 20.0
"""Seconds. A provider that asks for more is not asked again: its error goes out, wait included."""
FIRST_WAIT = 0.5

_MAY_PASS = frozenset(
    {
        ProviderErrorKind.RATE_LIMIT,
        ProviderErrorKind.OVERLOADED,
        ProviderErrorKind.SERVER,
        ProviderErrorKind.UNREACHABLE,
        ProviderErrorKind.STREAM_DROPPED,
    }
)

_PICTURE = re.compile(r"\b(image|picture|media.type|vision|multimodal|pixel)", re.IGNORECASE)

MAY_PASS_ELSEWHERE = frozenset(ProviderErrorKind) - {
    ProviderErrorKind.AUTH,
    ProviderErrorKind.BAD_REQUEST,
    ProviderErrorKind.REFUSED,
}
"""Failures that another model need not share. A key is for a person to mend; what one model refused is not
passed on to the next.
"""


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


def blames_pictures(error: ProviderError) -> bool:
    """Whether a request was refused for a picture in it, by the provider's own words."""
    words = f"{error.code} {error.detail} {error.message}"
    return error.kind is ProviderErrorKind.BAD_REQUEST and _PICTURE.search(words) is not None


def _may_pass(error: ProviderError) -> bool:
    # A server that says it was too slow may be quicker now; one that was waited for has cost minutes already.
    told_late = error.kind is ProviderErrorKind.TIMEOUT and error.status is not None
    return told_late or error.kind in _MAY_PASS
