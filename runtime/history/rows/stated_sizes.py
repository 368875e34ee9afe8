"""Which sizes a provider's error text states: its limit, what was asked for, and the parts of that. Pure.

All matching is on lower-case text. The tables grow as providers change their wording.
"""

import re
from dataclasses import dataclass

_DIGITS = r"\d[\d,_]*(?:\.\d+)?k?\b"
_NUM = rf"({_DIGITS})"
_MOST = 1e12
"""A row of digits may be longer than any number."""
_TOPIC = re.compile(
    r"\b(?:tokens?|context(?:_length)?(?:_exceeded)?|prompt(?:_tokens)?|inputs?|max length)\b"
)
_NO_ANSWER = r"(?! (?:completion|output) tokens)"
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
_RELATION = r"(?:cannot )?exceed(?:s|ed)?|(?:longer|larger|greater|less|smaller) than|too large for"
_OVER = re.compile(
    rf"(?<![\w.-])(?P<given>{_DIGITS})\)?[^\d.:;>]{{0,50}}?\b(?:{_RELATION})\b"
    rf"[^\d.:;>]{{0,60}}?(?<![\w.-])(?P<limit>{_DIGITS})"
)
"""What was given, that it is more than it may be, and what it may be."""
_ELSE = re.compile(
    r"(?:budget\w*|images?|pictures?|documents?|pages?|pixels?|bytes|files?|tools?)\b[^.>]{0,40}$"
)
_ANSWER = re.compile(r"max_?(?:completion_?|output_?|new_?)?tokens\b\W{0,4}$")
"""Behind these, what is compared is no prompt."""
_RATE = re.compile(r"per (?:min|minute|hour|day|second)\b|rate[ _]limit")
_LIMITS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"maximum context length (?:of|for) \S+ is {_NUM}",
        rf"maximum (?:supported )?(?:context|model|prompt|input|sequence) (?:length|window|size)"
        rf"[^\d.]{{0,30}}(?<![\w.-]){_NUM}",
        rf"available context size \(?{_NUM}",
        rf"\bn_ctx\W{{0,4}}{_NUM}",
        rf"maximum (?:allowed )?number of (?:input )?tokens(?: allowed)?[^\d.]{{0,12}}{_NUM}",
        rf"\blimit\W{{1,3}}{_NUM}\W{{1,4}}(?:used\W{{1,3}}[\d,_]+\W{{1,4}})?requested",
        rf"\blimit (?:of|is) {_NUM}(?! requests){_NO_ANSWER}",
        rf"context (?:window|limit|length|size)(?: of| is| size| limit| only|:| =)* \(?{_NUM}",
        rf"(?:input|prompt) (?:limit|length limit)(?: of| is|:| =)* {_NUM}",
        rf"{_NUM} maximum context length",
        rf"max_new_tokens` must be <= {_NUM}",
        rf"model token limit:? {_NUM}",
        rf"range of input length should be \[\d+, *{_NUM}",
        rf"in the prompt cannot exceed {_NUM}",
        rf"\btokens \(prompt and prediction\) cannot exceed {_NUM}",
        rf"\bmax size: {_NUM} tokens",
        rf"\bmust have less than {_NUM} tokens",
        rf"\bmax input tokens:? {_NUM}",
        rf"\bmax {_NUM} tokens per request",
        rf"\bmax tokens of {_NUM} exceeded",
        rf"\bmax length: ?{_NUM}",
        rf"\bsupports (?:only )?up to {_NUM}{_NO_ANSWER}",
        rf"\bmax(?:imum)? of {_NUM}{_NO_ANSWER}",
    )
)
_REQUESTED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\bfor a total of (?:at least )?{_NUM}",
        rf"\brequested:?(?: about| a total of)? {_NUM}(?! output tokens)",
        rf"\brequested tokens \({_NUM}",
        rf"\brequest \({_NUM} tokens",
        rf"\bn_prompt_tokens\W{{0,4}}{_NUM}",
        rf"(?:input|prompt) token count(?: of| is|:)? \(?{_NUM}",
        rf"(?:resulted in|contains|has|will take)(?: at least)? {_NUM}(?: input| prompt)? tokens",
        rf"prompt \(length {_NUM}\)",
        rf"\bcurrent length is {_NUM}",
        rf"\bkeep the first {_NUM} tokens",
        rf"\bn_keep\W{{0,4}}{_NUM}",
        rf"\breceived {_NUM}\b",
        rf"\brequires a sequence length of {_NUM}",
        rf"\btoo long: {_NUM}",
        rf"\bgiven: {_NUM}(?! `)",
        rf"\b(?:prompt|input|request|messages?)(?: \w+){{0,3}} (?:is|was|has|uses?|used) {_NUM} tokens",
    )
)
_INPUT_PARTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_NUM} (?:tokens )?(?:in|from|for) (?:the|your) (?:input )?(?:messages|prompt|input)",
        rf"{_NUM} of text input",
        rf"(?:has|contains)(?: at least)? {_NUM} input tokens",
        rf"given: {_NUM} `inputs` tokens",
    )
)
_OUTPUT_PARTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_NUM} (?:tokens )?(?:in|for) the (?:completion|output)",
        rf"{_NUM} `max_new_tokens`",
        rf"\brequested {_NUM} output tokens",
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


def sizes_in(text: str) -> Sizes:
    """The sizes that a lower-case text states."""
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
    return _compared(text) or _context_sizes(text)


def _compared(text: str) -> Sizes | None:
    """What stands on both sides of a `>`."""
    found = _COMPARED.search(text)
    if not found or _ELSE.search(text, 0, found.start()):
        return None
    given, output = _number(found["input"]), found["output"]
    extra = None if output is None else _number(output)
    split = given if output is not None else None
    return Sizes(_number(found["limit"]), given + (extra or 0), split, extra)


def _context_sizes(text: str) -> Sizes:
    limit, requested = _first(_LIMITS, text), _first(_REQUESTED, text)
    given_part, output_part = _first(_INPUT_PARTS, text), _first(_OUTPUT_PARTS, text)
    if given_part is not None and output_part is not None:
        requested = given_part + output_part
    if limit is None or requested is None:
        over = _over(text)
        limit, requested = over if over is not None else (limit, requested)
    return Sizes(limit, requested, given_part, output_part)


def _over(text: str) -> tuple[int, int] | None:
    """The limit and what was given, where a sentence says that the one is more than the other."""
    found = None if _RATE.search(text) else _OVER.search(text)
    if not found or _ELSE.search(text, 0, found.start()) or _ANSWER.search(text, 0, found.start()):
        return None
    limit, given = _number(found["limit"]), _number(found["given"])
    return (limit, given) if limit < given else None


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return _number(match[1])
    return None


def _number(digits: str) -> int:
    thousands = digits.endswith("k")
    value = float(digits.removesuffix("k").replace(",", "").replace("_", ""))
    return int(min(value * 1000 if thousands else value, _MOST))
