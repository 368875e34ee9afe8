"""A command line as the programs it runs, or the reason why that cannot be told. Pure; knows no rule.

Reads a small part of the shell's language, chosen so that sh, bash, dash, zsh and fish agree on it: literal
words, joined by `;`, `&`, `|`, `&&`, `||` and newlines, with the plainest redirections. Everything else
(expansions, groups, here-documents, reserved words, assignments, comments, odd characters) is not guessed
at: such a line is unclear as a whole, and whoever decides about it has to treat it so.
"""

import re
import sys
import unicodedata
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.permission.known_programs import words

MAX_LENGTH = 10_000
"""Characters of a line that is looked at."""

RESERVED = words(
    """
    if then else elif fi do done case esac while until for in select function time coproc 
    { } ! [[ ]] begin end switch not and or repeat foreach nocorrect noglob
    """
)
"""Words that make a program's place mean something else, in any of the shells."""

_JOINS = frozenset({";", "&", "|", "&&", "||"})
_NEEDS_MORE = frozenset({"|", "&&", "||"})
_BLANK = re.compile(r"[ \t]+")
_RUN = re.compile(r"[;&|<>()]+")
_PLAIN = re.compile(r"[A-Za-z0-9_./:,@%+=^-]+")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`!]|\\[^\n!])*)"')
_DOUBLE_ESCAPE = re.compile(r'\\([\\"$`])')
_ESCAPE = re.compile(r"\\([^\nA-Za-z0-9])")
_ASSIGNMENT = re.compile(r"[^=/]*=")
_CONTROL = frozenset(chr(code) for code in (*range(0x20), 0x7F)) - {"\t", "\n"}


class Word(NamedTuple):
    """A word after unquoting. open: what follows its first characters is up to the file system (`src/*`)."""

    text: str
    open: bool = False


Command = tuple[Word, ...]
"""A program with its arguments; never empty."""


@dataclass(frozen=True, slots=True)
class Line:
    """What a command line would do. writes: files that redirections fill. unclear: why it is not known.

    commands and writes are complete only when `unclear` is ''.
    """

    commands: tuple[Command, ...] = ()
    writes: tuple[str, ...] = ()
    unclear: str = ""


class Unclear(ValueError):
    """The line says something that is not read here."""


def read_line(text: str) -> Line:
    """The line, never failing."""
    if sys.platform == "win32":
        return Line(unclear="it is written for another kind of shell")
    try:
        return _Reader(_checked(text)).read()
    except Unclear as reason:
        return Line(unclear=str(reason))


def _checked(text: str) -> str:
    if len(text) > MAX_LENGTH:
        raise Unclear("it is very long")
    for char in text:
        # Other blanks, line ends and marks of direction: shells and eyes disagree about them.
        if char in _CONTROL or (not char.isascii() and unicodedata.category(char)[0] in "CZ"):
            raise Unclear("it holds a character that cannot be seen")
    return text


@dataclass(slots=True)
class _Reader:
    """The state of one reading, left to right. word None: between words. into: a redirection waits for it."""

    text: str
    place: int = 0
    word: str | None = None
    quoted: bool = False
    open: bool = False
    into: str = ""
    words: list[Word] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    wanting: bool = False

    def read(self) -> Line:
        while self.place < len(self.text):
            self._step()
        self._end_command()
        if self.wanting or not self.commands:
            raise Unclear("it ends before a command")
        return Line(tuple(self.commands), tuple(self.writes))

    def _step(self) -> None:
        char = self.text[self.place]
        if self._take(_BLANK):
            self._end_word()
        elif char == "\n":
            self.place += 1
            self._end_command()
        elif run := self._take(_RUN):
            self._operator(run[0])
        else:
            self._part_of_word(char)

    def _part_of_word(self, char: str) -> None:
        if plain := self._take(_PLAIN):
            if self.word is None and char in "=^":
                raise Unclear(f"some shells look a word that begins with {char} up")
            self._add(plain[0])
        elif char in "'\"":
            self._quoted(char)
        elif escape := self._take(_ESCAPE):
            self._add(escape[1])
            self.quoted = True
        elif char in "*?[]~":
            self._wild(char)
        elif (char == "#" and self.word) or not char.isascii():
            self._add(char)
            self.place += 1
        else:
            raise Unclear(f"it holds {char!r}, which the shell gives a meaning of its own")

    def _quoted(self, mark: str) -> None:
        found = self._take(_SINGLE if mark == "'" else _DOUBLE)
        if found is None:
            raise Unclear(f"what stands between its {mark} marks is not plain text")
        inside = found[1]
        if mark == '"':
            inside = _DOUBLE_ESCAPE.sub(r"\1", inside)
        elif "\\\\" in inside or inside.endswith("\\"):
            # fish ends such a text elsewhere.
            raise Unclear("shells disagree about a \\ between ' marks")
        self._add(inside)
        self.quoted = True

    def _wild(self, char: str) -> None:
        if char == "~" and self.word:
            self._add(char)
        elif char != "~" and (not self.word or self.word.startswith("-")):
            raise Unclear("a name that its pattern finds could be an option")
        else:
            self._add(char)
            self.open = True
        self.place += 1

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.place)
        if found:
            self.place = found.end()
        return found

    def _add(self, text: str) -> None:
        self.word = (self.word or "") + text

    # ------------------------------------------------------------ operators

    def _operator(self, run: str) -> None:
        if run in _JOINS:
            if not self._end_command():
                raise Unclear("an operator stands without a command before it")
            self.wanting = run in _NEEDS_MORE
        elif run in (">", ">>", ">|", ">&", "<"):
            self._descriptor()
            self._end_word()
            if self.into:
                raise Unclear("a redirection names no file")
            self.into = run
        else:
            raise Unclear(f"it holds {run}")

    def _descriptor(self) -> None:
        """The number right before a redirection is no argument."""
        if self.word is not None and self.word.isdigit() and not self.quoted:
            if self.word not in ("0", "1", "2"):
                raise Unclear("shells disagree about larger numbers before a redirection")
            self.word = None

    def _redirect(self, target: Word) -> None:
        operator, self.into = self.into, ""
        if target.open:
            raise Unclear("a redirection's file is not named in full")
        if operator == ">&":
            if not (target.text.isascii() and target.text.isdigit()):
                raise Unclear("it holds >& with something other than a number")
        elif target.text != "/dev/null":
            if operator == "<":
                raise Unclear("it reads a file by <")
            self.writes.append(target.text)

    def _end_word(self) -> None:
        if self.word is None:
            return
        word = Word(self.word, self.open)
        self.word, self.quoted, self.open = None, False, False
        if self.into:
            self._redirect(word)
        else:
            self.words.append(word)

    def _end_command(self) -> bool:
        """Whether there was one."""
        self._end_word()
        if self.into:
            raise Unclear("a redirection names no file")
        if not self.words:
            return False
        self.commands.append(_command(self.words))
        self.words, self.wanting = [], False
        return True


def _command(words: list[Word]) -> Command:
    program = words[0]
    if program.open or not program.text:
        raise Unclear("its program is not named in full")
    if program.text in RESERVED:
        raise Unclear(f"it holds the shell's word {program.text}")
    if _ASSIGNMENT.match(program.text):
        raise Unclear("it sets a variable")
    if program.text[0] in "-+%=" or "\n" in program.text:
        raise Unclear("its program has an odd name")
    return tuple(words)
