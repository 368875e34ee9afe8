"""What else the texts of an edit may mean: what stands around them or in them by mistake, taken off. Pure.

Knows no file. Each reading is tried as if the edit had been sent that way.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from runtime.tools.edits.line_numbers import rising, without_numbers
from runtime.tools.edits.match_levels import QUOTES


@dataclass(frozen=True, slots=True)
class Reading:
    """old and new, and what was done to them: words for the model, '' for the edit as it came."""

    old: str
    new: str
    done: str = ""


_FENCED = re.compile(r"\s*```[\w+.-]*[ \t]*\n(.*?\n?)```\s*", re.DOTALL)
_TAG = re.compile(
    r"</?(?:old|new|search|replace)(?:_?(?:str|string|text))?>|</?parameter[^>\n]*>", re.IGNORECASE
)
_ESCAPE = re.compile(r"""\\([nrt"'`\\/$])""")
_MEANT = {"n": "\n", "r": "\r", "t": "\t"}
_SIGNS = ("-", "+")


def readings(old: str, new: str) -> list[Reading]:
    """The edit as it came, then every other reading of it, each once."""
    plain = Reading(old, new)
    found = [plain]
    for base in (plain, *_bare(plain)):
        found += [base, *_numbers(base), *_diff_signs(base), *_escapes(base), *_line_feeds(base)]
    return [
        reading
        for index, reading in enumerate(found)
        if reading.old.strip()
        and all((reading.old, reading.new) != (other.old, other.new) for other in found[:index])
    ]


def _bare(edit: Reading) -> Iterator[Reading]:
    fenced, tagged = _FENCED.fullmatch(edit.old), _TAG.sub("", edit.old)
    if fenced:
        inside = _FENCED.fullmatch(edit.new)
        yield Reading(fenced[1], inside[1] if inside else edit.new, "the code fence taken off")
    if tagged != edit.old:
        yield Reading(tagged.strip("\n"), _TAG.sub("", edit.new).strip("\n"), "the tags taken off")


def _numbers(edit: Reading) -> Iterator[Reading]:
    ways = without_numbers(edit.old) if rising(edit.old) else None
    if ways is None:
        return
    others = without_numbers(edit.new)
    if others is None and any(map(without_numbers, filter(None, edit.new.split("\n")))):
        # Some lines of the new text have a number, some have none: who knows what they are.
        return
    for number, old in enumerate(ways):
        new = edit.new if others is None else others[min(number, len(others) - 1)]
        yield Reading(old, new, "the line numbers taken off")


def _diff_signs(edit: Reading) -> Iterator[Reading]:
    bare = []
    for text, sign in zip((edit.old, edit.new), _SIGNS, strict=True):
        lines = text.split("\n")
        heads = {line[0] for line in lines if line}
        if sign not in heads or not heads <= {sign, " "}:
            return
        bare.append("\n".join(line[1:] for line in lines))
    yield replace(edit, old=bare[0], new=bare[1], done="the signs of a diff taken off")


def _escapes(edit: Reading) -> Iterator[Reading]:
    """Both texts were escaped once too often."""
    if not _ESCAPE.search(edit.old):
        return
    old, new = without_escapes(edit.old), without_escapes(edit.new)
    half = r"\n" in edit.old and r"\n" in edit.new and "\n" in edit.new.strip("\n")
    if not half and not _breaks_a_string(old, new):
        yield Reading(old, new, "one level of escapes taken off")


def without_escapes(text: str) -> str:
    """Without one level of escapes."""
    return _ESCAPE.sub(lambda found: _MEANT.get(found[1], found[1]), text)


def _breaks_a_string(old: str, new: str) -> bool:
    r"""Whether a `\n` that became a line feed had stood within quotes: there it was meant as it stood.

    Then the quotes are odd in the line before it and in the one behind it.
    """
    there = set(old.split("\n"))
    lines = [line if line not in there else "" for line in new.split("\n")]
    return any(
        one.count(quote) % 2 and other.count(quote) % 2 for quote in QUOTES for one, other in pairwise(lines)
    )


def _line_feeds(edit: Reading) -> Iterator[Reading]:
    r"""A `\n` within quotes of the file came as a real line feed: escaped once too little."""
    old, count = _escaped_in_quotes(edit.old)
    new, others = _escaped_in_quotes(edit.new)
    if count and others in (0, count):
        yield Reading(old, new, "a line feed in quotes escaped")


def _escaped_in_quotes(text: str) -> tuple[str, int]:
    """With `\\n` for each line feed within quotes, and how many; as it is where quotes do not pair."""
    if '"""' in text or "'''" in text:
        return text, 0
    made, quote, count = [], "", 0
    for piece in re.findall(r"\\.|.", text, re.DOTALL):
        if piece in "\"'":
            quote = "" if piece == quote else quote or piece
        inside = quote and piece == "\n"
        count += bool(inside)
        made.append(r"\n" if inside else piece)
    return ("".join(made), count) if not quote else (text, 0)
