"""What the body of an error says, whatever its shape: codes, words, how long to wait. Judges nothing.

Servers wrap their errors in as many ways as there are servers: `{"error": {…}}`, `{"error": "text"}`, a list
of errors, `{"detail": …}`, an error of another server as text inside, a page of HTML, or nothing. Pure, but
for the time of day, which a wait that is stated as a date needs. No wait is longer than
`LONGEST_WAIT`, whatever a server says: it goes into sentences, sums and timers.
"""

import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import orjson

LONGEST_WAIT = 31 * 86400.0
"""Seconds. Quotas are for a month at most; who states more has a wrong clock or is broken."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PIECE = re.compile(
    r"(\d+(?:\.\d+)?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)(?![a-z])"
)
_ASKED = re.compile(
    r"\b(?:try again|retry(?: your request)?|retrying|wait|resets?)"
    r"(?: (?:in|after|for|about|at least))*:? (?=\d)"
)


def parse_retry_after(retry_after: str | None, retry_after_ms: str | None = None) -> float | None:
    """Seconds to wait as the `retry-after` headers state them: seconds or an HTTP date. None: not stated."""
    for text, scale in ((retry_after_ms, 1000.0), (retry_after, 1.0)):
        if text and re.fullmatch(r"\d+(\.\d+)?", text.strip(), re.ASCII):
            return bounded(float(text) / scale)
    if not retry_after:
        return None
    try:
        return bounded(parsedate_to_datetime(retry_after).timestamp() - time.time())
    except OverflowError:
        return LONGEST_WAIT
    except ValueError:
        return None


def bounded(seconds: float) -> float:
    """The wait, not below 0 and not above LONGEST_WAIT."""
    return float(min(max(seconds, 0.0), LONGEST_WAIT))


def stated_wait(text: str) -> float | None:
    """Seconds that a sentence asks to wait ("try again in 1m30.5s"); None when it asks for none."""
    text = text.lower()
    asked = _ASKED.search(text)
    return duration(text, asked.end()) if asked else None


def duration(text: str, start: int = 0) -> float | None:
    """Seconds of a length of time that stands there, "36s" or "1 hour 30 min"; None when none does."""
    total: float | None = None
    while piece := _PIECE.match(text, start):
        total = bounded((total or 0.0) + float(piece[1]) * _UNITS[_unit(piece[2])])
        start = piece.end() + (text[piece.end() : piece.end() + 1] == " ")
    return total


def _unit(name: str) -> str:
    return "ms" if name.startswith(("ms", "mill")) else name[0]


LEVELS = 8
"""Objects, lists and texts within each other that are opened."""
_MESSAGES = ("message", "detail", "error", "errors", "msg")
_CODES = ("code", "type", "status", "reason")
_SIZES = ("n_prompt_tokens", "n_ctx")
"""Figures that stand beside the message in place of in it."""
_WAITS = ("retry_after", "retry_after_seconds", "retryDelay")


@dataclass(frozen=True, slots=True)
class Told:
    """What a body says. codes: the server's own, outermost first, as they came. text: its words, or all of
    a body that has no known shape. wait: seconds, None when not stated. page: it is HTML, so not the API's.
    """

    codes: tuple[str, ...] = ()
    text: str = ""
    wait: float | None = None
    page: bool = False

    @property
    def code(self) -> str:
        """The code that tells most: llama.cpp gives code 400 beside its own type, a word."""
        return next((code for code in self.codes if not code.isdecimal()), next(iter(self.codes), ""))


def read_body(body: bytes) -> Told:
    """What an answer whose status is no success says of it."""
    text = body.decode("utf-8", "replace").strip()
    if text[:1] == "<":
        return Told(text=text, page=True)
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Told(text=text, wait=stated_wait(text))
    told = read_error(value)
    return told if told.text else Told(told.codes, text, told.wait)


def read_error(value: object, levels: int = LEVELS) -> Told:
    """What an error says that is decoded already, as it also stands in a stream."""
    if isinstance(value, str):
        return _read_text(value, levels)
    if isinstance(value, list):
        return _read_list(value, levels)
    if not isinstance(value, dict):
        return Told()
    words = (value.get(key) for key in _CODES)
    told = Told(tuple(str(word) for word in words if _is_code(word)), wait=_wait(value))
    if levels:
        inner = _error_in(value)
        told = _joined(told, read_error(inner, levels - 1))
        told = _joined(told, _beside(value, levels - 1))
    return _joined(told, Told(text=" ".join(_figures(value, told.text))))


def _figures(value: dict[str, object], said: str) -> list[str]:
    sizes = ((name, value.get(name)) for name in _SIZES)
    return [f"{name}: {size}" for name, size in sizes if isinstance(size, int) and str(size) not in said]


def _is_code(value: object) -> bool:
    # Anthropic's bodies say "type": "error" around the error that has a type of its own.
    return isinstance(value, str | int) and not isinstance(value, bool) and value not in ("", "error")


def _error_in(value: dict[str, object]) -> object:
    error = value.get("error")
    if isinstance(error, dict | list) and error:
        return error
    return next((value[key] for key in _MESSAGES if value.get(key)), None)


def _beside(value: dict[str, object], levels: int) -> Told:
    """What stands next to the message: Google's details, the error of whoever stands behind a gateway."""
    metadata = value.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    details = value.get("details")
    found = read_error(details, levels) if isinstance(details, list) else Told()
    return _joined(Told(found.codes, "", found.wait), read_error(raw, levels))


def _read_text(text: str, levels: int) -> Told:
    """The text, or the error that was put into it as JSON."""
    if levels and text.lstrip()[:1] == "{":
        try:
            return read_error(orjson.loads(text), levels - 1)
        except orjson.JSONDecodeError:
            pass
    return Told(text=text, wait=stated_wait(text))


def _read_list(values: list[object], levels: int) -> Told:
    told = Told()
    for value in values[:20] if levels else ():
        told = _joined(told, read_error(value, levels - 1))
    return told


def _joined(one: Told, other: Told) -> Told:
    text = "\n".join(filter(None, (one.text, other.text)))
    return Told(one.codes + other.codes, text, other.wait if one.wait is None else one.wait)


def _wait(value: dict[str, object]) -> float | None:
    for name in _WAITS:
        stated = value.get(name)
        if isinstance(stated, int | float) and not isinstance(stated, bool) and stated >= 0:
            return bounded(stated)
        if isinstance(stated, str) and (seconds := duration(stated)) is not None:
            return seconds
    return None
