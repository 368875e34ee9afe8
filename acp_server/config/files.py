"""A settings file to a layer, read once, bounded and parsed, and the line on which each of its keys stands.

`tomllib` gives values without places. The scanner here walks keys and skips values, so it needs a text that
`tomllib` accepted; on any other it stops early and answers with what it found. Knows no schema.
"""

import hashlib
import os
import re
import stat
import tomllib
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from acp_server.config.layers import (
    MAX_DEPTH,
    Key,
    Layer,
    Origin,
    Source,
    Tree,
    is_deep,
    long_key_line,
    printable,
)
from runtime.values.errors import ConfigError
from runtime.values.file_access import NO_WAITING, reading

_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK_OR_COMMA = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_PLAIN_VALUE = re.compile(r"[^,\]}\n#]*")
_REST_OF_LINE = re.compile(r"[^\n]*")


def locate(text: str) -> dict[Key, int]:
    """1-based line of every key and table of `text`; a table named several times keeps its first line."""
    scanner = _Scanner(text)
    with suppress(_Unreadable, RecursionError):  # what was found so far is still right
        scanner.document()
    return scanner.lines


def line_of(lines: dict[Key, int], key: Key) -> int:
    """The line of `key`, or of the nearest table around it; 1 when nothing is known."""
    for end in range(len(key), 0, -1):
        if key[:end] in lines:
            return lines[key[:end]]
    return 1


class _Unreadable(Exception):
    pass


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Key, int] = {}
        self._breaks = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> None:
        table: Key = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_REST_OF_LINE)
            self._skip(_BLANK)

    def _header(self) -> Key:
        start = self.at
        self.at += 2 if self.text.startswith("[[", start) else 1
        key = self._key()
        self._record((), key, start)
        return key

    def _pair(self, table: Key) -> None:
        start = self.at
        key = self._key()
        self._record(table, key, start)
        if not self.text.startswith("=", self.at):
            raise _Unreadable
        self.at += 1
        self._value((*table, *key))

    def _key(self) -> Key:
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            quoted = _STRING.match(self.text, self.at)
            match = quoted or _BARE.match(self.text, self.at)
            if match is None:
                raise _Unreadable
            parts.append(_unquoted(match.group()) if quoted else match.group())
            self.at = match.end()
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return tuple(parts)
            self.at += 1

    def _value(self, key: Key) -> None:
        self._skip(_BLANK)
        opening = self.text[self.at : self.at + 1]
        if opening == "{":
            self._items("}", key)
        elif opening == "[":
            self._items("]", key)
        elif not self._skip(_STRING):
            self._skip(_PLAIN_VALUE)

    def _items(self, closing: str, key: Key) -> None:
        self.at += 1
        while True:
            self._skip(_BLANK_OR_COMMA)
            if self.at >= len(self.text):
                raise _Unreadable
            if self.text[self.at] == closing:
                self.at += 1
                return
            if closing == "}":
                self._pair(key)
            else:
                self._element(key)

    def _element(self, key: Key) -> None:
        start = self.at
        self._value(key)
        if self.at == start:  # nothing was read: never stand still
            raise _Unreadable

    def _record(self, table: Key, key: Key, start: int) -> None:
        line = bisect_right(self._breaks, start) + 1
        for end in range(1, len(key) + 1):
            self.lines.setdefault((*table, *key[:end]), line)

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        if match is None:
            return False
        self.at = match.end()
        return True


def _unquoted(quoted: str) -> str:
    if quoted[0] == "'" or "\\" not in quoted:
        return quoted[1:-1]
    try:
        return str(tomllib.loads(f"key = {quoted}")["key"])
    except ValueError as error:
        raise _Unreadable from error


MAX_BYTES = 256 * 1024


def read_layer(path: Path, source: Source) -> Layer:
    """The file as a layer. Raises ConfigError naming file and line; FileNotFoundError is the caller's."""
    content = _content(path)
    name = printable(str(path), 4096)
    text = _text(content, name)
    return Layer(
        source, name, str(path.parent), _parse(text, name), file_origins(source, name, text), digest(content)
    )


def digest(content: bytes) -> str:
    """What a file is recognised by."""
    return hashlib.sha256(content).hexdigest()


def file_origins(source: Source, name: str, text: str) -> Callable[[Key], Origin]:
    """Places in a file's text, looked for when first asked: most starts never ask."""
    lines: dict[Key, int] = {}

    def find(key: Key) -> Origin:

        if not lines:
            lines.update(locate(text))
        return Origin(source, name, line_of(lines, key))

    return find


def _content(path: Path) -> bytes:
    try:
        # A checked-out folder may hold a pipe of that name.
        with reading(path, NO_WAITING) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{printable(str(path), 4096)}: is not a regular file")
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path cannot be used"
        raise ConfigError(f"{printable(str(path), 4096)}: cannot be read: {reason}") from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{printable(str(path), 4096)}: is larger than {MAX_BYTES} bytes")
    return content


def _text(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: is not valid UTF-8") from error
    return text.replace("\r\n", "\n")


def _parse(text: str, name: str) -> Tree:
    line = long_key_line(text)
    if line is not None:
        raise ConfigError(f"{name}:{line}: a key has more than {MAX_DEPTH} parts")
    try:
        tree = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{name}: is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(_syntax(str(error), name, text)) from error
    if is_deep(tree):
        raise ConfigError(f"{name}: is nested too deeply")
    return tree


def _syntax(reason: str, name: str, text: str) -> str:
    """The parser's sentence with its place in front instead of at the end."""
    what, _, place = reason.rpartition(" (at ")
    if place.startswith("line "):
        line = place[5:].split(",")[0]
    else:
        what, line = what or reason, str(max(text.count("\n") + (not text.endswith("\n")), 1))
    return f"{name}:{line}: is not valid TOML: {printable(what)}"
