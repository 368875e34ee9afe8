"""Reading a provider's error: is it a context overflow, and which sizes does it state? Decides nothing else.

The tables grow as providers change their wording; all matching is on lower-case text.
"""

import re
from dataclasses import dataclass

from runtime.values.errors import ProviderError

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
)
OTHER_LIMITS = (
    "rate limit",
    "rate_limit",
    "per minute",
    "per min",
    "quota",
    "too many requests",
    "output token",
    "completion token",
)
WEAK = (
    "too many tokens",
    "token limit exceeded",
    "token count exceeds",
    "request entity too large",
    "payload too large",
)
RATES = ("per minute", "rate limit")

_DIGITS = r"\d[\d,_]*(?:\.\d+)?k?\b"
_NUM = rf"({_DIGITS})"
_TOPIC = re.compile(r"\b(?:tokens?|context(?:_length_exceeded)?|prompt|input)\b")
_OUTPUT_LIMITS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_NUM} *> *{_NUM},? which is the maximum allowed number of output tokens",
        rf"limit of {_NUM} (?:completion|output) tokens",
        rf"at most {_NUM} (?:completion|output) tokens",
    )
)
_COMPARED = re.compile(
    rf"(?P<input>{_DIGITS})(?: *\+ *(?P<output>{_DIGITS}))?(?: tokens)?"
    rf" *> *(?P<limit>{_DIGITS})(?! *- *\d)"
)
_LIMITS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"maximum (?:context|model|prompt|input|sequence) (?:length|window|size)[^\d.]{{0,30}}{_NUM}",
        rf"available context size \(?{_NUM}",
        rf"\bn_ctx\W{{0,4}}{_NUM}",
        rf"maximum (?:allowed )?number of (?:input )?tokens(?: allowed)?[^\d.]{{0,12}}{_NUM}",
        rf"\blimit\W{{1,3}}{_NUM}\W{{1,4}}(?:used\W{{1,3}}[\d,_]+\W{{1,4}})?requested",
        rf"\blimit (?:of|is) {_NUM}(?! requests)",
        rf"context (?:window|limit|length|size)(?: of| is| size| limit| only|:| =)* \(?{_NUM}",
        rf"(?:input|prompt) (?:limit|length limit)(?: of| is|:| =)* {_NUM}",
        rf"{_NUM} maximum context length",
        rf"max_new_tokens` must be <= {_NUM}",
        rf"model token limit:? {_NUM}",
        rf"range of input length should be \[\d+, *{_NUM}",
        rf"in the prompt cannot exceed {_NUM}",
        rf"\bmax size: {_NUM} tokens",
    )
)
_REQUESTED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\brequested:?(?: about| a total of)? {_NUM}",
        rf"\brequested tokens \({_NUM}",
        rf"\brequest \({_NUM} tokens",
        rf"\bn_prompt_tokens\W{{0,4}}{_NUM}",
        rf"(?:input|prompt) token count (?:of |is )?\(?{_NUM}",
        rf"(?:resulted in|contains(?: at least)?|has(?: at least)?) {_NUM}(?: input| prompt)? tokens",
        rf"prompt \(length {_NUM}\)",
        rf"\bcurrent length is {_NUM}",
        rf"\bkeep the first {_NUM} tokens",
        rf"\bn_keep\W{{0,4}}{_NUM}",
        rf"\breceived {_NUM}\b",
        rf"\b(?:prompt|input|request|messages?)(?: \w+){{0,3}} (?:is|was|has|uses?|used) {_NUM} tokens",
    )
)
_INPUT_PARTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_NUM} (?:tokens )?(?:in|from|for) (?:the|your) (?:messages|prompt|input)",
        rf"{_NUM} of text input",
        rf"has {_NUM} input tokens",
        rf"given: {_NUM} `inputs` tokens",
    )
)
_OUTPUT_PARTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_NUM} (?:tokens )?(?:in|for) the (?:completion|output)",
        rf"{_NUM} `max_new_tokens`",
        rf"max_(?:completion_)?tokens['`\"]* is too large: {_NUM}",
    )
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What an error text states, tokens, None where it does not.

    limit: the size limit; limits_output: it is one on the answer alone. requested: the size asked for
    in all; input and output are its parts.
    """

    limit: int | None = None
    requested: int | None = None
    input: int | None = None
    output: int | None = None
    limits_output: bool = False

    @property
    def too_large(self) -> bool:
        """The text says that more was asked for than its limit allows."""
        return self.limit is not None and self.requested is not None and self.limit < self.requested

    @property
    def blames_output(self) -> bool:
        """The answer asked for is what does not fit; the messages alone would."""
        if self.limits_output:
            return True
        return None not in (self.limit, self.input, self.output) and (self.input or 0) < (self.limit or 0)


def error_text(error: ProviderError | str) -> str:
    """What there is to read in an error, lower case: the code, then the provider's own words."""
    if isinstance(error, str):
        return error.lower()
    return f"{error.code}\n{error.detail or error.message}".lower()


def stated_sizes(error: ProviderError | str) -> Sizes:
    """The sizes an error states."""
    text = error_text(error)
    if not _TOPIC.search(text):
        return Sizes()
    limit = _first(_OUTPUT_LIMITS[1:], text)
    if limit is not None:
        asked = _first(_OUTPUT_PARTS, text)
        return Sizes(limit, asked, output=asked, limits_output=True)
    compared = _OUTPUT_LIMITS[0].search(text)
    if compared:
        asked = _number(compared[1])
        return Sizes(_number(compared[2]), asked, output=asked, limits_output=True)
    return _context_sizes(text)


def _context_sizes(text: str) -> Sizes:
    compared = _COMPARED.search(text)
    if compared:
        given, output = _number(compared["input"]), compared["output"]
        extra = None if output is None else _number(output)
        split = given if output is not None else None
        return Sizes(_number(compared["limit"]), given + (extra or 0), split, extra)
    limit, requested = _first(_LIMITS, text), _first(_REQUESTED, text)
    given_part, output_part = _first(_INPUT_PARTS, text), _first(_OUTPUT_PARTS, text)
    if given_part is not None and output_part is not None:
        requested = given_part + output_part
    return Sizes(limit, requested, given_part, output_part)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return _number(match[1])
    return None


def _number(digits: str) -> int:
    thousands = digits.endswith("k")
    value = float(digits.removesuffix("k").replace(",", "").replace("_", ""))
    return int(value * 1000 if thousands else value)


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
    if _holds(text, STRONG):
        return True
    return not _holds(text, OTHER_LIMITS) and _holds(text, WEAK)


def _holds(text: str, needles: tuple[str, ...]) -> bool:
    return any(needle in text for needle in needles)
