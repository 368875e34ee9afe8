"""How long a provider asks to wait, as its head or its words state it. Pure, but for the time of day."""

import re
import time
from email.utils import parsedate_to_datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PIECE = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)(?![a-z])"
)
_ASKED = re.compile(
    r"\b(?:try again|retry(?: your request)?|retrying|wait|resets?)"
    r"(?: (?:in|after|for|about|at least))*:? (?=\d)"
)


def parse_retry_after(retry_after: str | None, retry_after_ms: str | None = None) -> float | None:
    """Seconds to wait as the `retry-after` headers state them: seconds or an HTTP date. None: not stated."""
    for text, scale in ((retry_after_ms, 1000.0), (retry_after, 1.0)):
        if text and re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()):
            return float(text) / scale
    if not retry_after:
        return None
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def stated_wait(text: str) -> float | None:
    """Seconds that a sentence asks to wait ("try again in 1m30.5s"); None when it asks for none."""
    text = text.lower()
    asked = _ASKED.search(text)
    return duration(text, asked.end()) if asked else None


def duration(text: str, start: int = 0) -> float | None:
    """Seconds of a length of time that stands there, "36s" or "1 hour 30 min"; None when none does."""
    total: float | None = None
    while piece := _PIECE.match(text, start):
        total = (total or 0.0) + float(piece[1]) * _UNITS[_unit(piece[2])]
        start = piece.end() + (text[piece.end() : piece.end() + 1] == " ")
    return total


def _unit(name: str) -> str:
    return "ms" if name.startswith(("ms", "mill")) else name[0]
