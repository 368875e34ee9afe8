"""How a path is written: what a model may give, how a name is shown; and blocking work in a thread."""

import json
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import trio

from runtime.values.errors import ToolError

MAX_PATH = 4096
"""Longest path accepted from a model, characters (PATH_MAX on Linux)."""

_DRIVE = re.compile(r"^(?:[A-Za-z]:[\\/]|\\\\)")
_DEVICE_NAMESPACE = re.compile(r"^[\\/]{2}[?.][\\/]")
_URI = re.compile(r"^file://(?P<host>[^/]*)(?P<path>/.*)$", re.IGNORECASE | re.DOTALL)
_LINE_FRAGMENT = re.compile(r"#L\d+(?:[-:]L?\d+)?$")
_LOOKS_LIKE_MARKUP = re.compile(r'^"|^\s|\s$|  | -> |:\d+:|/$')
_ON_WINDOWS = os.name == "nt"


def shorten(text: str, limit: int = 200) -> str:
    """`text` for an error or a title: at most about `limit` characters, the middle left out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}…{text[-half:]}"


def quote(name: str) -> str:
    """A file name on one line, told apart from what stands around it.

    An ordinary name is itself. One that would be misread (control characters, bytes that are no
    UTF-8, leading or trailing spaces, a form that looks like our own output) becomes a JSON string.
    """
    if name.isprintable() and not _LOOKS_LIKE_MARKUP.search(name):
        return name
    return json.dumps(name)


def quote_folder(name: str) -> str:
    """A folder's name with its trailing slash, outside the quotes when there are any."""
    return f"{quote(name)}/"


def absolute(raw: str, cwd: Path) -> str:
    """The absolute path that `raw` names; `..` and links are left as they are.

    raw: absolute, relative to `cwd`, or a `file://` URI of this machine. `~` is an ordinary name.
    Raises ToolError for what can name no file here.
    """
    text = _from_uri(raw) if raw[:7].lower() == "file://" else raw
    _refuse_impossible(text)
    return os.path.join(cwd, text)


def lexical(raw: str, cwd: Path) -> Path:
    """As `absolute`, with `.` and `..` taken out by spelling alone: for titles, never for access."""
    return Path(os.path.normpath(absolute(raw, cwd)))


def shown(path: Path, roots: Sequence[Path]) -> str:
    """`path` as a model should write it: relative to the first root when below it, else absolute."""
    return quote(relative(path, roots))


def relative(path: Path, roots: Sequence[Path]) -> str:
    """As `shown`, without quotes."""
    rest = below(path, roots[0]) if roots else None
    return str(path) if rest is None else rest or "."


def below(path: Path, folder: Path) -> str | None:
    """What of an absolute path stands below the folder, '' for the folder itself; None: it is elsewhere.

    By spelling alone, as `Path.relative_to`, in a tenth of its time: every tool call asks several times.
    """
    if _ON_WINDOWS:
        return str(path.relative_to(folder)).removeprefix(".") if path.is_relative_to(folder) else None
    text, above = str(path), str(folder)
    if text == above:
        return ""
    prefix = above if above.endswith("/") else f"{above}/"
    return text[len(prefix) :] if text.startswith(prefix) else None


def _refuse_impossible(text: str) -> None:
    if not text:
        raise ToolError("path is empty")
    if "\0" in text:
        raise ToolError("path holds a NUL byte; no file can have such a name")
    if len(text) > MAX_PATH:
        raise ToolError(f"path is too long ({len(text)} characters; at most {MAX_PATH})")
    if _DEVICE_NAMESPACE.match(text) and _ON_WINDOWS:
        raise ToolError(f"path names a device, not a file: {shorten(quote(text))}")
    if _DRIVE.match(text) and not _ON_WINDOWS:
        raise ToolError(f"path is a Windows path, and this is not Windows: {shorten(quote(text))}")
    try:
        os.fsencode(text)
    except UnicodeError:
        raise ToolError(f"path holds characters no file name can have: {shorten(quote(text))}") from None


def _from_uri(raw: str) -> str:
    found = _URI.match(raw)
    if found is None or found["host"].lower() not in ("", "localhost"):
        raise ToolError(f"not a file URI of this machine: {shorten(quote(raw))}")
    # Editors put a line range behind a file's URI; it is no part of the name.
    path = unquote(_LINE_FRAGMENT.sub("", found["path"]), errors="surrogateescape")
    # file:///C:/x carries a slash before the drive; a drive that is not ours is refused by the caller.
    return path[1:] if _DRIVE.match(path[1:]) else path


T = TypeVar("T")


async def in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Run `work(stopped)` in a thread. A cancel returns at once, and `stopped()` becomes true.

    Only for work that changes nothing: it may go on for a moment after its caller is gone.
    """
    gone = threading.Event()
    try:
        return await trio.to_thread.run_sync(work, gone.is_set, abandon_on_cancel=True)
    finally:
        gone.set()
