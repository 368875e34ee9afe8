"""The words of a new line, where the file spells the old one otherwise than the edit does. Pure.

What an edit leaves alone keeps the file's characters. What it adds is spelled as the file spells the same
characters in the old lines; where that could be read in two ways there is no answer.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby

from runtime.tools.edits.match_levels import ENTITIES, QUOTES, UNSEEN, Level, Unit

_TOKEN = re.compile(rf"[{UNSEEN}]*(?:\\+.?|&#?\w+;|\.\.\.|\s+|\w+|.)|[{UNSEEN}]+", re.DOTALL)
_ESCAPED = re.compile(r"(\\+)(.?)", re.DOTALL)
_PAIRS = (("\u201c", "\u201d"), ("\u2018", "\u2019"))
_ENTITY = re.compile(r"&#?\w+;")


class Spelling:
    """How the file writes what the edit writes.

    pairs: (old line, the file's line), alike at `level`, without blanks around them.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], level: Level) -> None:
        self._level = level
        self._seen: defaultdict[str, set[str]] = defaultdict(set)
        """What stands in the edit -> what stands there in the file."""
        for old, found in pairs:
            if old != found:
                self._learn(old, found)
            else:
                for char in set(old) & set(QUOTES):
                    self._seen[char].add(char)

    def changed(self, found: str, old: str, new: str) -> str | None:
        """The file's line with what the edit changes of it. None: more than one reading."""
        if new == old:
            return found
        if found == old:
            return new
        there, here = self._level.units(found), self._level.units(old)
        before, after = _TOKEN.findall(old), _TOKEN.findall(new)
        places = [0]
        for token in before:
            places.append(places[-1] + len(token))
        made = []
        for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            kept = tag == "equal"
            piece = (
                _same_part(there, here, places[a], places[b], found)
                if kept
                else self.added("".join(after[c:d]))
            )
            if piece is None:
                return None
            made.append(piece)
        return "".join(made)

    def added(self, text: str) -> str | None:
        """New words as the file would spell them. None: more than one reading."""
        for step in (self._slashes, self._entities, self._quotes):
            made = step(text)
            if made is None:
                return None
            text = made
        return text

    def _learn(self, old: str, found: str) -> None:
        there, here = self._level.units(found), self._level.units(old)
        pairs = zip(here, there, strict=True)
        for _, group in groupby(pairs, key=lambda pair: (pair[0].start, pair[1].start)):
            ours, theirs = next(group)
            self._seen[old[ours.start : ours.end]].add(found[theirs.start : theirs.end])

    def _quotes(self, text: str) -> str | None:
        curly = self._curly(text)
        if not self._level.quotes:
            return curly
        targets = {there for here, found in self._seen.items() for there in found if there != here}
        made = []
        for char in text:
            if char not in QUOTES:
                made.append(char)
                continue
            found = self._seen.get(char, {char})
            other = next(iter(found))
            if len(found) > 1 or (other == char and char in targets) or (other != char and other in text):
                return None
            made.append(other)
        return "".join(made)

    def _curly(self, text: str) -> str:
        """Straight quotes in the file's curly ones, where it has no straight ones in the old lines."""
        for plain in "\"'":
            found = self._seen.get(plain, set())
            if not found:
                continue
            for opening, closing in _PAIRS:
                if found <= {opening, closing}:
                    begins = re.compile(rf"(?<![\w.,;:!?)\]]){plain}(?=\S)")
                    text = begins.sub(opening, text).replace(plain, closing)
        return text

    def _slashes(self, text: str) -> str | None:
        if not self._level.slashes:
            return text
        counts = {
            (here.count("\\"), there.count("\\")) for here, found in self._seen.items() for there in found
        }
        if not all(here >= there for here, there in counts):
            return None if set(text) & {"\\", "$", *QUOTES} else text
        return _one_level_less(text, bare=any(self._seen.get(sign) == {sign} for sign in QUOTES))

    def _entities(self, text: str) -> str | None:
        if not self._level.entities:
            return text
        if any(here in ENTITIES and here not in found for here, found in self._seen.items()):
            return _ENTITY.sub(lambda found: ENTITIES.get(found[0], found[0]), text)
        made: list[str] = []
        for char in text:
            found = self._seen.get(char, {char})
            if len(found) > 1:
                return None
            made.extend(found if char in "&<>\"'" else char)
        return "".join(made)


def _one_level_less(text: str, *, bare: bool) -> str | None:
    """Without one level of backslashes. bare: quotes without one are nothing special here."""
    unclear = False

    def less(found: re.Match[str]) -> str:
        nonlocal unclear
        count, char = len(found[1]), found[2]
        unclear = unclear or (count % 2 == 1 and (char.isalnum() or not char))
        return "\\" * (count // 2) + char

    made = _ESCAPED.sub(less, text)
    if unclear or (not bare and set(_ESCAPED.sub("", text)) & set(QUOTES)):
        return None
    return made


def _same_part(there: Sequence[Unit], here: Sequence[Unit], start: int, end: int, found: str) -> str | None:
    """What stands in the file where old[start:end] stands in the edit. None when that cuts a character."""
    inside = [index for index, unit in enumerate(here) if unit.start >= start and unit.end <= end]
    if any(unit.start < start < unit.end or unit.start < end < unit.end for unit in here):
        return None
    if not inside:
        return ""
    first, last = there[inside[0]], there[inside[-1]]
    after = there[inside[-1] + 1].start if inside[-1] + 1 < len(there) else len(found)
    before = there[inside[0] - 1].end if inside[0] else 0
    cuts = (first.start < before) or (inside[-1] + 1 < len(there) and after < last.end)
    return None if cuts else found[first.start : last.end]
