"""From what an HTTP API answered to a ProviderError: pure, one table. Knows no HTTP client.

The sentence for a person is always ours; the provider's own text goes to `detail`, since it may
quote the prompt.
"""

import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import orjson

from runtime.errors import ProviderError, ProviderErrorKind

DETAIL_CAP = 4096
"""Characters of a provider's message that are kept."""

_Kind = ProviderErrorKind
_SAFE_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_FINAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})

RETRYABLE = frozenset(
    {_Kind.RATE_LIMIT, _Kind.OVERLOADED, _Kind.SERVER, _Kind.UNREACHABLE, _Kind.TIMEOUT, _Kind.STREAM_DROPPED}
)

STATUS_KINDS: dict[int, ProviderErrorKind] = {
    401: _Kind.AUTH,
    403: _Kind.AUTH,
    404: _Kind.NOT_FOUND,
    408: _Kind.TIMEOUT,
    409: _Kind.SERVER,
    429: _Kind.RATE_LIMIT,
    503: _Kind.OVERLOADED,
    504: _Kind.TIMEOUT,
    529: _Kind.OVERLOADED,
}
"""Every other status: 5xx is SERVER, the rest BAD_REQUEST."""

SENTENCES: dict[ProviderErrorKind, str] = {
    _Kind.AUTH: "did not accept the key{key_hint}",
    _Kind.NOT_FOUND: 'does not know the model "{model}" or the address; check model and base_url',
    _Kind.TIMEOUT: "took too long to answer",
    _Kind.RATE_LIMIT: "limits requests just now{wait}",
    _Kind.OVERLOADED: "is overloaded just now{wait}",
    _Kind.SERVER: "failed on its side",
    _Kind.BAD_REQUEST: "refused the request",
    _Kind.UNREACHABLE: "cannot be reached; check that it runs and that base_url is right",
    _Kind.STREAM_DROPPED: "broke the answer off before its end",
    _Kind.MALFORMED: "sent something that is no answer of its API; check kind and base_url",
}
_BY_STATUS: dict[int, str] = {
    402: "wants payment: the account has no credit left",
    403: "does not allow this key to use the model{key_hint}",
    413: "refused the request as too large",
}
_CODE_STATUS: dict[str, int] = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "timeout_error": 504,
}


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a message is about: configured name, host[:port] of the base URL, model, key variable."""

    name: str
    host: str = ""
    model: str = ""
    api_key_env: str = ""

    def label(self) -> str:
        """The subject of a sentence."""
        return f'The provider "{self.name}" ({self.host})' if self.host else f'The provider "{self.name}"'


def kind_of(status: int) -> ProviderErrorKind:
    """The kind that an HTTP status stands for."""
    return STATUS_KINDS.get(status) or (_Kind.SERVER if status >= 500 else _Kind.BAD_REQUEST)


def failure(
    peer: Peer,
    kind: ProviderErrorKind,
    *,
    status: int | None = None,
    code: str = "",
    detail: str = "",
    retry_after: float | None = None,
    sentence: str = "",
) -> ProviderError:
    """The error with its sentence. `sentence` replaces the table's; it may use the same fields."""
    text = sentence or _BY_STATUS.get(status or 0) or SENTENCES[kind]
    filled = text.format(
        model=peer.model,
        key_hint=f"; check the environment variable {peer.api_key_env}" if peer.api_key_env else "",
        wait=f"; it asks to wait {retry_after:.0f} s" if retry_after else "",
    )
    facts = [f"HTTP {status}"] if status else []
    if _SAFE_CODE.fullmatch(code):
        facts.append(code)
    tail = f" ({', '.join(facts)})" if facts else ""
    return ProviderError(
        f"{peer.label()} {filled}{tail}.",
        kind=kind,
        retryable=kind in RETRYABLE and code not in _FINAL_CODES,
        status=status,
        code=code[:DETAIL_CAP],
        detail=detail[:DETAIL_CAP],
        retry_after=retry_after,
    )


def status_failure(peer: Peer, status: int, body: bytes, retry_after: float | None = None) -> ProviderError:
    """The error for an answer whose status is no success. body: as received, any content."""
    code, detail = describe(body)
    return failure(peer, kind_of(status), status=status, code=code, detail=detail, retry_after=retry_after)


def stated_failure(peer: Peer, error: object) -> ProviderError:
    """The error for an `error` member that came inside a successful answer."""
    code, detail = _code_and_message(error)
    status = _CODE_STATUS.get(code) or (int(code) if code.isdecimal() and 400 <= int(code) < 600 else None)
    kind = kind_of(status) if status else _Kind.SERVER
    return failure(peer, kind, status=status, code=code, detail=detail)


def describe(body: bytes) -> tuple[str, str]:
    """(code, message) of an error body; a body of no known shape is its own message."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", text
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return "", text
    code, message = _code_and_message(value.get("error", value))
    return code, message or text


def _code_and_message(error: object) -> tuple[str, str]:
    if not isinstance(error, dict):
        return "", str(error)
    message = error.get("message") or error.get("detail") or error.get("error") or ""
    named = [error.get(key) for key in ("code", "type", "status")]
    words = [str(value) for value in named if isinstance(value, str | int) and value not in ("", True, False)]
    # A word tells more than a number: llama.cpp gives code 400 beside its own type.
    code = next((word for word in words if not word.isdecimal()), words[0] if words else "")
    return code, message if isinstance(message, str) else orjson.dumps(message).decode()


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
