"""The search without ripgrep, as a process of its own: reads a request, writes hits. Standard library only.

A process and not a thread, because Python's `re` holds the interpreter while it matches and cannot be
interrupted: a pattern that backtracks without end would stop the whole server. A process can be killed.

stdin: one JSON object {pattern, plain, case_sensitive, root, target, globs, max_hits, max_file_bytes};
root is absolute; target is relative to it, "." for the root. stdout: JSON lines in the shape of `rg --json`
(match and summary). stderr: a line for each file that could not be read, or why the pattern cannot be
compiled (then there is no summary).
"""

import base64
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from runtime.tools.sandbox.ignore_files import (
    Layer,
    Rule,
    ignored,
    layers_above,
    layers_of,
    read_file,
    rules,
    verdict,
)

_LINE_FEED = re.compile(r"(?<!\\)(?:\\\\)*\\n")
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(slots=True)
class Search:
    """One request, and what it has counted."""

    root: str
    expression: re.Pattern[str]
    globs: tuple[Rule, ...]
    max_hits: int
    max_file_bytes: int
    hits: int = 0

    def wanted(self, path: str) -> bool | None:
        """By the globs of the request: True, False, or None when there are none to say so."""
        if not self.globs:
            return None
        answer = verdict(self.globs, path, is_folder=False)
        if answer is None:
            return all(one.negated for one in self.globs)
        return answer


def main() -> None:
    """Serve one request. Exit status 0, 2 when the pattern cannot be compiled."""
    request = json.loads(sys.stdin.buffer.read())
    try:
        expression = _compiled(request["pattern"], request["plain"], request["case_sensitive"])
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        sys.exit(2)
    search = Search(
        request["root"],
        expression,
        rules(request["globs"]),
        request["max_hits"],
        request["max_file_bytes"],
    )
    for path in _files(search, request["target"]):
        _search_file(search, path)
        if search.hits >= search.max_hits:
            break
    _write({"type": "summary", "data": {}})


def _compiled(pattern: str, plain: bool, case_sensitive: bool) -> re.Pattern[str]:
    expression = re.compile(re.escape(pattern) if plain else pattern, 0 if case_sensitive else re.IGNORECASE)
    if not plain and _LINE_FEED.search(pattern):
        # As ripgrep says it: no line has one, and a search without a hit would only mislead.
        raise re.error('the literal "\\n" is not allowed in a regex')
    return expression


def _files(search: Search, target: str) -> Iterator[str]:
    """Paths relative to the root, folder by folder in byte order, as ripgrep sorts them."""
    if not os.path.isdir(os.path.join(search.root, target)):
        yield target
        return
    names = () if target == "." else tuple(target.split("/"))
    yield from _walk(search, f"{target}/" if names else "", layers_above(search.root, names))


def _walk(search: Search, prefix: str, layers: list[Layer]) -> Iterator[str]:
    pending: list[tuple[str, bool, list[Layer]]] = [(prefix, True, layers)]
    while pending:
        path, is_folder, above = pending.pop()
        if not is_folder:
            yield path
            continue
        here = above + layers_of(search.root, path)
        pending += reversed([(name, below, here) for name, below in _entries(search, path, here)])


def _entries(search: Search, prefix: str, layers: list[Layer]) -> list[tuple[str, bool]]:
    """The entries of a folder that are searched: (path, False) or (path with its slash, True)."""
    try:
        with os.scandir(os.path.join(search.root, prefix)) as scan:
            entries = sorted(scan, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        _complain(prefix, error)
        return []
    found = []
    for entry in entries:
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            excluded = search.globs and verdict(search.globs, path, is_folder=True) is False
            if entry.name != ".git" and not excluded and not ignored(layers, path, is_folder=True):
                found.append((f"{path}/", True))
        elif entry.is_file(follow_symlinks=False):
            chosen = search.wanted(path)
            # A glob that takes a file in wins over an ignore file, as in ripgrep.
            unspoken = not search.globs or verdict(search.globs, path, is_folder=False) is None
            if chosen is not False and not (unspoken and ignored(layers, path, is_folder=False)):
                found.append((path, False))
    return found


def _search_file(search: Search, path: str) -> None:
    try:
        data = read_file(os.path.join(search.root, path), search.max_file_bytes, complain=True)
    except OSError as error:
        _complain(path, error)
        return
    encoding = _UTF16.get(data[:2])
    if encoding is None and b"\0" in data:
        return
    text = data[2:].decode(encoding, "replace") if encoding else _utf8(data)
    lines = text.split("\n")
    if not lines[-1]:
        # What stands behind the last newline is no line.
        lines.pop()
    for number, line in enumerate(lines, 1):
        found = search.expression.search(line.removesuffix("\r"))
        if found is not None:
            _hit(path, number, line, found.start())
            search.hits += 1
            if search.hits >= search.max_hits:
                return


def _utf8(data: bytes) -> str:
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def _hit(path: str, number: int, line: str, start: int) -> None:
    offset = len(line[:start].encode("utf-8", "replace"))
    text = line.encode("utf-8", "replace").decode()
    data = {
        "path": _path(path),
        "lines": {"text": text},
        "line_number": number,
        "submatches": [{"start": offset}],
    }
    _write({"type": "match", "data": data})


def _path(path: str) -> dict[str, str]:
    try:
        path.encode()
    except UnicodeEncodeError:
        return {"bytes": base64.b64encode(os.fsencode(path)).decode()}
    return {"text": path}


def _complain(path: str, error: OSError) -> None:
    sys.stderr.write(f"{path!r}: {error.strerror}\n")


def _write(message: Mapping[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    # At once: what was found before a kill counts.
    sys.stdout.buffer.flush()
