"""When a line of an edit counts as a line of the file though their characters differ. Pure.

A level names what may differ. `form` gives what is left of a line then; two lines are alike when their forms
are equal. `units` gives the same form with the place of each of its characters in the line.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

_ALIKE = {
    '"': "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02",
    "'": "\u2018\u2019\u201a\u201b\u2032\u00b4\uff07",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d",
    " ": "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    ",": "\u3001\uff0c",
    ".": "\u3002\uff0e",
} | {
    chr(code - 0xFEE0): chr(code)
    for code in range(0xFF01, 0xFF5F)
    if chr(code) not in "\uff02\uff07\uff0d\uff0c\uff0e"
}
ONE_FOR_ONE = {ord(sign): plain for plain, signs in _ALIKE.items() for sign in signs}
"""Signs that models write as their neighbours on a keyboard, one character for one."""
UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
ENTITIES = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&apos;": "'",
    "&#39;": "'",
    "&#34;": '"',
    "&nbsp;": " ",
}
QUOTES = "\"'`"

_SIGNS = f"[{re.escape(''.join(map(chr, ONE_FOR_ONE)))}{UNSEEN}\u2026]|.[\u0300-\u036f]+"


@dataclass(frozen=True, slots=True)
class Unit:
    """A character of a form. text[start:end] is what it stands for, with what is left out before it."""

    char: str
    start: int
    end: int


@dataclass(frozen=True)
class Level:
    """What may differ beside the ends of lines. name: of it, for the model."""

    name: str
    indents: bool = True
    signs: bool = True
    runs: bool = False
    quotes: bool = False
    slashes: bool = False
    entities: bool = False

    def form(self, line: str) -> str:
        """What of the line counts."""
        bare = line.strip() if self.indents else line.rstrip()
        if not self.signs or (bare.isascii() and self._in_ascii is None):
            return bare
        pattern = self._in_ascii if bare.isascii() and self._in_ascii else self._pattern
        return pattern.sub(lambda found: self._folded(found[0]), bare)

    def units(self, text: str) -> list[Unit]:
        """The form of a text without spaces at its ends, character by character."""
        made: list[Unit] = []
        at = start = 0
        while at < len(text):
            found = self._pattern.match(text, at) if self.signs else None
            end = found.end() if found else at + 1
            folded = self._folded(text[at:end]) if found else text[at]
            for char in folded:
                made.append(Unit(char, start, end))
            # What counts for nothing belongs to what follows it.
            start = end if folded else start
            at = end
        if made and start < at:
            made[-1] = Unit(made[-1].char, made[-1].start, at)
        return made

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join([*self._parts, _SIGNS]))

    @cached_property
    def _in_ascii(self) -> re.Pattern[str] | None:
        """The part of it that can match in a line of ASCII, as most are."""
        return re.compile("|".join(self._parts)) if self._parts else None

    @property
    def _parts(self) -> list[str]:
        parts = ["&(?:amp|lt|gt|quot|apos|#39|#34|nbsp);"] if self.entities else []
        parts += [r"\\"] if self.slashes else []
        parts += [f"[ \t{_ALIKE[' ']}]+"] if self.runs else []
        parts += [f"[{QUOTES}]"] if self.quotes else []
        return parts

    def _folded(self, found: str) -> str:
        if found in ENTITIES and self.entities:
            found = ENTITIES[found]
        if found == "\\" or found in UNSEEN:
            return ""
        if found == "\u2026":
            return "..."
        if self.runs and not found.strip():
            return " "
        plain = ONE_FOR_ONE.get(ord(found), found) if len(found) == 1 else unicodedata.normalize("NFC", found)
        return '"' if self.quotes and plain in QUOTES else plain


IN_LINE = Level("typographic characters", indents=False)
"""For a text within lines, sign for sign."""
INDENTATION = Level("indentation", signs=False)
LEVELS = (
    Level("trailing spaces", indents=False, signs=False),
    INDENTATION,
    Level("typographic characters"),
    Level("spaces", runs=True),
    Level("quotes", quotes=True),
    Level("backslashes", slashes=True),
    Level("HTML entities", entities=True),
)
"""For whole lines, the strictest first."""
