"""From what an HTTP API answered to a ProviderError: pure, tables. Knows no HTTP client.

The sentence for a person is always ours; the provider's own text goes to `detail`, since it may
quote the prompt or the key.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from runtime.history.rows.overflow import is_context_overflow, stated_sizes
from runtime.providers.errors.body import LONGEST_WAIT, Told, read_body, read_error
from runtime.providers.errors.body import parse_retry_after as parse_retry_after
from runtime.providers.errors.refusals import rule_for
from runtime.values.errors import ProviderError, ProviderErrorKind

DETAIL_CAP = 4096
"""Characters of a provider's message that are kept."""

_Kind = ProviderErrorKind
_SAFE_CODE = re.compile(r"[A-Za-z]+(?:[_.:-][A-Za-z]+)*|\d{1,5}")
"""Words or a number: what a key may look like is not repeated, wherever a server puts it."""

RETRYABLE = frozenset(
    {_Kind.RATE_LIMIT, _Kind.OVERLOADED, _Kind.SERVER, _Kind.UNREACHABLE, _Kind.TIMEOUT, _Kind.STREAM_DROPPED}
)

STATUS_KINDS: dict[int, ProviderErrorKind] = {
    401: _Kind.AUTH,
    402: _Kind.QUOTA,
    403: _Kind.AUTH,
    404: _Kind.NOT_FOUND,
    408: _Kind.TIMEOUT,
    409: _Kind.SERVER,
    429: _Kind.RATE_LIMIT,
    498: _Kind.OVERLOADED,
    503: _Kind.OVERLOADED,
    504: _Kind.TIMEOUT,
    524: _Kind.TIMEOUT,
    529: _Kind.OVERLOADED,
}
"""Every other status: 5xx is SERVER, the rest BAD_REQUEST."""

SENTENCES: dict[ProviderErrorKind, str] = {
    _Kind.AUTH: "did not accept the key{key_hint}",
    _Kind.QUOTA: "wants payment: the account's credit or quota is used up; see its billing page",
    _Kind.NOT_FOUND: 'does not know the model "{model}" or the address; check model and base_url',
    _Kind.TIMEOUT: "took too long to answer",
    _Kind.RATE_LIMIT: "limits requests just now{wait}",
    _Kind.OVERLOADED: "is overloaded just now{wait}",
    _Kind.SERVER: "failed on its side",
    _Kind.BAD_REQUEST: "refused the request",
    _Kind.REFUSED: "does not answer this: its content policy forbids it",
    _Kind.UNREACHABLE: "cannot be reached; check that it runs and that base_url is right",
    _Kind.STREAM_DROPPED: "broke the answer off before its end",
    _Kind.MALFORMED: "sent something that is no answer of its API; check kind and base_url",
}
_FORBIDDEN = "does not allow this key to use the model{key_hint}"
_TOO_LARGE = "refused the request as too large"
_TOO_LONG = "refused the request as too long for the model{limit}"
_LESS_OUTPUT = "does not give answers of the length asked for{limit}; lower max_output_tokens"
_PAGE = "was not reached: a page came in place of an answer; check base_url and any proxy in between"
_CODE_STATUS: dict[str, int] = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
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
    """Whom a message is about: configured name, host[:port] of the base URL, model, key variable.

    hints: one more sentence for some kinds, what to do where one knows the server; `{model}` in it is filled.
    """

    name: str
    host: str = ""
    model: str = ""
    api_key_env: str = ""
    hints: Mapping[ProviderErrorKind, str] = field(default_factory=dict)

    def label(self) -> str:
        """The subject of a sentence."""
        return f'The provider "{self.name}" ({self.host})' if self.host else f'The provider "{self.name}"'

    @property
    def key_hint(self) -> str:
        """How to log in: where the key comes from, and how to give another."""
        if self.api_key_env:
            return f"; check the environment variable {self.api_key_env}, or run `wholeturn setup`"
        return (
            f"; run `wholeturn setup`, or set providers.{self.name}.api_key_env to a variable that holds one"
        )


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
    limit: int | None = None,
    final: bool = False,
) -> ProviderError:
    """The error with its sentence. `sentence` replaces the table's; it may use the same fields.

    limit: tokens that the error states as the most. final: not to be tried again, whatever its kind.
    """
    text = (sentence or SENTENCES[kind]).format(
        model=peer.model,
        key_hint=peer.key_hint,
        wait=f"; it asks to wait {wait_text(retry_after)}" if retry_after else "",
        limit=f" (at most {limit} tokens)" if limit else "",
    )
    facts = [f"HTTP {status}"] if status else []
    if len(code) <= 64 and _SAFE_CODE.fullmatch(code):
        facts.append(code)
    tail = f" ({', '.join(facts)})" if facts else ""
    hint = f" {peer.hints[kind].format(model=peer.model)}" if kind in peer.hints else ""
    return ProviderError(
        f"{peer.label()} {text}{tail}.{hint}",
        kind=kind,
        retryable=kind in RETRYABLE and not final,
        status=status,
        code=code[:DETAIL_CAP],
        detail=detail[:DETAIL_CAP],
        retry_after=retry_after,
    )


def wait_text(seconds: float) -> str:
    """A wait as a person reads it."""
    return "a month or more" if seconds >= LONGEST_WAIT else f"{max(round(seconds), 1)} s"


def status_failure(peer: Peer, status: int, body: bytes, retry_after: float | None = None) -> ProviderError:
    """The error for an answer whose status is no success. body: as received, any content."""
    told = read_body(body)
    kind, sentence = kind_of(status), _status_sentence(status)
    if told.page and kind in (_Kind.AUTH, _Kind.NOT_FOUND, _Kind.BAD_REQUEST) and status != 413:
        kind, sentence = _Kind.BAD_REQUEST, _PAGE
    return _judged(peer, told, kind, sentence, status, told.wait if retry_after is None else retry_after)


def stated_failure(peer: Peer, error: object) -> ProviderError:
    """The error for an `error` member that came inside a successful answer."""
    told = read_error(error)
    code = told.code
    status = _CODE_STATUS.get(code) or (int(code) if code.isdecimal() and 400 <= int(code) < 600 else None)
    kind = kind_of(status) if status else _Kind.SERVER
    return _judged(peer, told, kind, _status_sentence(status), status, told.wait)


def _status_sentence(status: int | None) -> str:
    return {403: _FORBIDDEN, 413: _TOO_LARGE}.get(status or 0, "")


def _judged(
    peer: Peer, told: Told, kind: ProviderErrorKind, sentence: str, status: int | None, wait: float | None
) -> ProviderError:
    """The error as the provider's own words make it, where they say more than the status."""
    rule = rule_for(told, wait)
    if rule is not None:
        kind, sentence = rule.kind, rule.sentence
    make = partial(
        failure,
        peer,
        kind,
        status=status,
        code=told.code,
        detail=told.text,
        retry_after=wait if kind in RETRYABLE else None,
    )
    error = make(sentence=sentence)
    if not is_context_overflow(error):
        return error
    sizes = stated_sizes(error)
    # The same request would be refused again: it has to become smaller first.
    return make(sentence=_LESS_OUTPUT if sizes.limits_output else _TOO_LONG, limit=sizes.limit, final=True)
