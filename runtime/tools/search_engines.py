"""How a search is started: ripgrep's command line, or our own worker's. Starts nothing itself."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import runtime
from runtime.errors import ToolError

MAX_FILE = 16 * 1024 * 1024
"""Larger files, bytes, are not searched: one line of one is all that we ever hold."""

# Isolated and without site: starts in a fraction of the time and runs nothing that the folder planted.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from runtime.tools.search_worker import main; main()"
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP")


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. root: absolute. target: below it, `/` between names, "." for all of it."""

    pattern: str
    root: Path
    target: str
    globs: tuple[str, ...]
    case_sensitive: bool
    max_hits: int


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start: its arguments, what it reads, and where and in what environment it runs."""

    argv: tuple[str, ...]
    stdin: bytes
    cwd: Path
    environment: dict[str, str]


def find_ripgrep(roots: Sequence[Path]) -> str | None:
    """The path of `rg`. Never one out of a searched folder, whose owner may not be our user's friend."""
    folders = [
        folder
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        if os.path.isabs(folder) and not any(Path(folder).resolve().is_relative_to(root) for root in roots)
    ]
    found = shutil.which("rg", path=os.pathsep.join(folders))
    return found if found is not None and os.path.isabs(found) else None


def ripgrep(program: str, query: Query) -> Launch:
    """ripgrep, one thread's order: by path, so that a cut list is the same each time."""
    options = [
        "--json",
        "--no-config",
        "--no-follow",
        "--no-require-git",
        "--no-ignore-global",
        "--hidden",
        "--crlf",
        "--sort=path",
        f"--max-filesize={MAX_FILE}",
        f"--max-count={query.max_hits}",
        "--case-sensitive" if query.case_sensitive else "--ignore-case",
        *(f"--glob={glob}" for glob in query.globs),
        "--glob=!.git",
    ]
    target = query.target if query.target == "." else f"./{query.target}"
    return Launch((program, *options, "--", query.pattern, target), b"", query.root, _environment())


def python(query: Query) -> Launch:
    """Our own worker in this interpreter. Raises ToolError when there is no interpreter to start."""
    if not sys.executable:
        raise ToolError("search_text needs ripgrep (rg) here; it is not on PATH")
    package = Path(runtime.__file__ or "").parent.parent
    request = {
        "pattern": query.pattern,
        "case_sensitive": query.case_sensitive,
        "root": str(query.root),
        "target": query.target,
        "globs": list(query.globs),
        "max_hits": query.max_hits,
        "max_file_bytes": MAX_FILE,
    }
    argv = (sys.executable, "-I", "-S", "-B", "-X", "utf8", "-W", "ignore", "-c", _BOOT, str(package))
    return Launch(argv, json.dumps(request).encode(), query.root, _environment())


def _environment() -> dict[str, str]:
    # No keys and no settings of ours: a search needs none.
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
