"""Reading a provider's error: is it a context overflow, is it perhaps one? Decides nothing else.

The tables grow as providers change their wording; all matching is on lower-case text.
"""

import re
from collections.abc import Iterator

from runtime.history.rows.stated_sizes import Sizes as Sizes
from runtime.history.rows.stated_sizes import sizes_in
from runtime.values.errors import ProviderError, ProviderErrorKind

STRONG = (
    "context_length_exceeded",
    "exceed_context_size_error",
    "maximum context length",
    "context length exceeded",
    "exceeds the context length",
    "context window",
    "available context size",
    "context limit",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "maximum prompt length",
    "maximum model length",
    "exceeds the maximum number of tokens",
    "reduce the length of the messages",
    "exceeds max length",
    "exceeded model token limit",
    "greater than the context length",
    "loaded with context length",
    "range of input length should be",
    "tokens + `max_new_tokens` must be",
    "context_exceeded",
    "outofcontexterror",
    "longer than the model's context",
    "exceeds context length",
    "exceeds context size",
    "exceeds the maximum allowed input length",
    "exceeds maximum input length",
    "exceeds maximum sequence length",
    "maximum supported sequence length",
    "must be less than max_seq_len",
    "`inputs` must have less than",
    "cannot exceed the total tokens limit",
    "input tokens exceed",
    "max input token",
    "exceed max message tokens",
    "tokens in request more than max tokens",
    "total tokens exceed",
    "exceed model token limit",
    "max length exceeded",
    "tokens too long",
    "tokens_too_long",
    "max input characters",
    "characters_too_long",
    "malformed input request: expected maxlength",
    "value at 'body' failed to satisfy constraint: member must have length",
    "must be at least 1, got -",
    "prompt 超长",
    "超过最大长度",
    "上下文长度",
)
STRONG_PATTERN = re.compile(r"\bmax tokens of [\d,]+ exceeded")
OTHER_LIMITS = (
    "rate limit",
    "rate_limit",
    "per minute",
    "per min",
    "quota",
    "too many requests",
    "output token",
    "completion token",
    "per day",
    "per hour",
    "throttl",
    "please wait",
    "unavailable",
)
WEAK = (
    "too many tokens",
    "token limit exceeded",
    "token count exceeds",
    "request entity too large",
    "payload too large",
)
RATES = ("per minute", "rate limit")

_SPEAKS = re.compile(r"token|length|context")
_FIGURE = re.compile(r"(?<![\w.\[-])\d[\d,_]*k?(?![\w\]])")
_SMALLEST = 100
"""No window is smaller: what is counted below that are other things."""
_OTHER_CAUSE = re.compile(
    r"\brate|per (?:min|hour|day|second)|quota|credit|balance|afford|throttl|too many requests|please wait"
    r"|image|picture|pixel|audio|video|pdf|\bpages?\b|document|attachment"
    r"|\btools?\b|function|schema|\barray\b|\bname\b|call_id|\.id\b|stop sequence|temperature|penalty|budget"
    r"|unrecogni[sz]ed|unknown (?:name|field|param|argument)|unsupported (?:value|param)|not permitted"
)
_ANSWER_LENGTH = re.compile(
    r"max_?(?:completion_?|output_?|new_?)?tokens|maximum tokens|(?:output|completion) tokens"
)
_ASKED = re.compile(r"prompt|messages?\b|\binputs?\b(?! should be)|context(?!_window)")
_MAY_BE_SIZE = frozenset({400, 413, 422, 500})


def error_text(error: ProviderError | str) -> str:
    """What there is to read in an error, lower case: the code, then the provider's own words."""
    if isinstance(error, str):
        return error.lower()
    return f"{error.code}\n{error.detail or error.message}".lower()


def stated_sizes(error: ProviderError | str) -> Sizes:
    """The sizes an error states."""
    return sizes_in(error_text(error))


def stated_limit(error: ProviderError | str) -> int | None:
    """The model's window as an overflow error names it, tokens; None when it names none."""
    sizes = stated_sizes(error)
    return None if sizes.limits_output else sizes.limit


def is_context_overflow(error: ProviderError | str) -> bool:
    """True when the provider refused because the request does not fit the model's context."""
    text = error_text(error)
    status = None if isinstance(error, str) else error.status
    if stated_sizes(error).too_large:
        return True
    if status == 429:
        return False
    if status == 413:
        return not _holds(text, RATES)
    if _holds(text, STRONG) or STRONG_PATTERN.search(text):
        return True
    return not _holds(text, OTHER_LIMITS) and _holds(text, WEAK)


def _holds(text: str, needles: tuple[str, ...]) -> bool:
    return any(needle in text for needle in needles)


def may_be_too_large(error: ProviderError) -> bool:
    """Whether a refusal in words that no table knows is perhaps an overflow: it speaks of tokens, length or
    context, with two figures, and names no other cause.
    """
    if error.status not in _MAY_BE_SIZE or is_context_overflow(error) or names_other_cause(error):
        return False
    words = (error.detail or error.message).lower()
    figures = {figure for figure in _figures(words) if figure >= _SMALLEST}
    return _SPEAKS.search(words) is not None and len(figures) > 1


def names_other_cause(error: ProviderError) -> bool:
    """Whether a refusal is about something that a shorter conversation would not change."""
    if error.kind not in (ProviderErrorKind.BAD_REQUEST, ProviderErrorKind.SERVER):
        return True
    words = error_text(error)
    about_answer = _ANSWER_LENGTH.search(words) is not None and _ASKED.search(words) is None
    return about_answer or _OTHER_CAUSE.search(words) is not None


def _figures(words: str) -> Iterator[int]:
    for found in _FIGURE.findall(words):
        digits = found.replace(",", "").replace("_", "")
        yield int(digits.removesuffix("k")) * (1000 if digits.endswith("k") else 1)
