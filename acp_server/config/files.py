"""A settings file to a layer: read once, bounded, parsed. Knows no schema."""

import hashlib
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

from acp_server.config.depth import MAX_DEPTH, is_deep, long_key_line
from acp_server.config.keys import Key, Tree, printable
from acp_server.config.layers import Layer, Origin, Source
from runtime.errors import ConfigError
from runtime.file_access import NO_WAITING, reading

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
        from acp_server.config.locate import line_of, locate

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
