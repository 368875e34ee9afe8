"""A search process: how it is started (ripgrep's command line or our worker's), its hits, its end.

Bounded in time and output. It has a process group of its own, which is killed when enough was found, when
time is up and when the caller is cancelled; nothing of it is left when `run` returns. Knows no tool.
"""

import base64
import binascii
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

from runtime.tools.unread_output import rest_of
from runtime.values.errors import ToolError

MAX_FILE = 16 * 1024 * 1024
"""Larger files, bytes, are not searched: one line of one is all that we ever hold."""

# Isolated and without site: starts in a fraction of the time and runs nothing that the folder planted.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from runtime.tools.search.worker import main; main()"
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP")


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. root: absolute. target: below it, `/` between names, "." for all of it.

    plain: the pattern is the text itself.
    """

    pattern: str
    root: Path
    target: str
    globs: tuple[str, ...]
    case_sensitive: bool
    max_hits: int
    plain: bool = False


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
        *(["--fixed-strings"] if query.plain else []),
        *(f"--glob={glob}" for glob in query.globs),
        "--glob=!.git",
    ]
    target = query.target if query.target == "." else f"./{query.target}"
    return Launch((program, *options, "--", query.pattern, target), b"", query.root, _environment())


def python(query: Query) -> Launch:
    """Our own worker in this interpreter. Raises ToolError when there is no interpreter to start."""
    if not sys.executable:
        raise ToolError("search_text needs ripgrep (rg) here; it is not on PATH")
    package = Path(__file__).resolve().parents[3]
    request = {
        "pattern": query.pattern,
        "plain": query.plain,
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


_MAX_LINE = 128 * 1024 * 1024
_MAX_ERRORS = 64 * 1024
_REAP_SECONDS = 2.0
_LAST_WORDS = 2.0
"""Seconds that a process has, once its output has ended, to say why and to end itself."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching line. path: relative to the search's root. offset: of the match, bytes in UTF-8."""

    path: str
    line: int
    text: str
    offset: int


@dataclass(slots=True)
class Found:
    """What a search gave. complete: it came to its end by itself. errors: its stderr, capped.

    withheld: files whose hits were taken out again. ending: how the process ended, '' when we ended it.
    """

    hits: list[Hit] = field(default_factory=list)
    binary: set[str] = field(default_factory=set)
    complete: bool = False
    timed_out: bool = False
    withheld: int = 0
    errors: str = ""
    ending: str = ""
    broken: str = ""
    """Why the output could not be taken in."""


async def run(launch: Launch, *, max_hits: int, time_limit: float) -> Found:
    """Start it; take at most `max_hits` hits in `time_limit` seconds. Raises ToolError if it cannot."""
    found = Found()
    process = await _start(launch)
    try:
        with trio.move_on_after(time_limit) as limit:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_give, process, launch.stdin)
                nursery.start_soon(_complaints, process, found)
                if await _gather(process, found, max_hits):
                    # Its output has ended; why it has may still be on its way.
                    nursery.cancel_scope.deadline = trio.current_time() + _LAST_WORDS
                    found.ending = _ending(await process.wait())
                else:
                    nursery.cancel_scope.cancel()
        found.timed_out = limit.cancelled_caught
        found.errors += rest_of(process.stderr, _MAX_ERRORS).decode("utf-8", "replace")
    finally:
        await _end(process)
    if found.broken:
        raise ToolError(found.broken)
    return found


async def _start(launch: Launch) -> trio.Process:
    try:
        return await trio.lowlevel.open_process(
            launch.argv,
            stdin=subprocess.PIPE if launch.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=launch.cwd,
            env=launch.environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"the search could not be started ({error.strerror})") from error


async def _end(process: trio.Process) -> None:
    if process.returncode is None:
        _kill(process)
    with trio.move_on_after(_REAP_SECONDS, shield=True):
        await process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            await trio.aclose_forcefully(stream)


def _kill(process: trio.Process) -> None:
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass


async def _give(process: trio.Process, data: bytes) -> None:
    if process.stdin is None:
        return
    try:
        await process.stdin.send_all(data)
        await process.stdin.aclose()
    except trio.BrokenResourceError:
        # It ended before it read all; its exit tells why.
        return


async def _complaints(process: trio.Process, found: Found) -> None:
    kept, stream = bytearray(), process.stderr
    while stream is not None and (data := await stream.receive_some(65536)):
        kept += data[: max(0, _MAX_ERRORS - len(kept))]
        found.errors = kept.decode("utf-8", "replace")


async def _gather(process: trio.Process, found: Found, max_hits: int) -> bool:
    """Whether its output ended by itself."""
    held, stream = bytearray(), process.stdout
    while stream is not None and (data := await stream.receive_some(262144)):
        scanned = len(held)
        held += data
        if held.find(b"\n", scanned) < 0:
            if len(held) > _MAX_LINE:
                found.broken = "the search gave a line too long to take in; narrow path or glob"
                return False
            continue
        *lines, rest = bytes(held).split(b"\n")
        held = bytearray(rest)
        for line in lines:
            _take(line, found)
            if found.broken or len(found.hits) >= max_hits:
                return False
    return True


def _ending(status: int) -> str:
    return f"it was ended by signal {-status}" if status < 0 else f"it ended with exit status {status}"


def _take(line: bytes, found: Found) -> None:
    try:
        message = json.loads(line)
        data = message["data"]
        if message["type"] == "match":
            found.hits.append(_hit(data))
        elif message["type"] == "end" and data.get("binary_offset") is not None:
            found.binary.add(_text(data["path"]))
        elif message["type"] == "summary":
            found.complete = True
    except (ValueError, KeyError, TypeError, AttributeError):
        found.broken = "the search answered in a form that is not understood"


def _hit(data: Mapping[str, object]) -> Hit:
    submatches, line = data.get("submatches"), data.get("line_number")
    first = submatches[0] if isinstance(submatches, list) and submatches else {}
    offset = first.get("start", 0) if isinstance(first, dict) else 0
    return Hit(_text(data["path"]), int(str(line)), _text(data["lines"], "replace"), int(offset))


def _text(value: object, errors: str = "surrogateescape") -> str:
    """ripgrep's `{"text": …}`, or `{"bytes": base64}` for what is not UTF-8."""
    if not isinstance(value, dict):
        raise TypeError
    if "text" in value:
        return str(value["text"])
    try:
        return base64.b64decode(value["bytes"]).decode("utf-8", errors)
    except binascii.Error as error:
        raise ValueError from error
