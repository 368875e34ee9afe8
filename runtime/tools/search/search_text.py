"""search_text: lines that match a regular expression, as `path:line: text`.

Knows what to ask and how to show it; ripgrep or our own worker does the search, with one output.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Arguments, Parameter, check, tool_spec
from runtime.tools.sandbox.path_requests import missing, path_request
from runtime.tools.sandbox.paths import in_thread, lexical, quote, relative, shorten, shown
from runtime.tools.sandbox.roots import Place, kind, locate, stat_place
from runtime.tools.sandbox.sensitive_files import is_secret
from runtime.tools.search import search_process
from runtime.tools.search.search_process import MAX_FILE, Found, Hit, Query
from runtime.values.errors import ToolError
from runtime.values.events import Location, ToolKind

_MAX_PATTERN = 4096
_RESULTS = 100
_SHOWN_LINE = 300
"""Longest part of a line that is shown, characters."""
_NO_PATTERN = re.compile(
    "regex parse error|look-around|backreferences|regex exceeds size limit|is not allowed"
)
_REASON = re.compile(r"error: (\S.*)|^rg: ((?!regex parse error).*)", re.MULTILINE)
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_PARAMETERS = (
    Parameter("pattern", "string", "Regular expression.", required=True, example="def main"),
    Parameter("path", "string", "File or folder."),
    Parameter("glob", "string", "E.g. src/**/*.ts; !glob leaves out."),
    Parameter("case_sensitive", "boolean", "Default: true."),
    Parameter("max_results", "integer", f"Default: {_RESULTS}.", minimum=1, maximum=1000),
)

FindRipgrep = Callable[[Sequence[Path]], str | None]


class SearchText:
    """Searches inside the session's roots.

    find_ripgrep: gives the program, or None to search with our own worker. time_limit: seconds.
    """

    spec = tool_spec(
        "search_text",
        "Find lines in files, as path:line: text. Ignored, binary and secret files are left out.",
        _PARAMETERS,
    )
    kind: ToolKind = "search"

    def __init__(
        self, find_ripgrep: FindRipgrep = search_process.find_ripgrep, time_limit: float = 20.0
    ) -> None:
        self._find_ripgrep = find_ripgrep
        self._time_limit = time_limit

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Search for "foo" in src`."""
        pattern, raw = arguments.get("pattern"), arguments.get("path")
        if not isinstance(pattern, str):
            return ToolView("Search")
        title = f'Search for "{_CONTROLS.sub(_escape, shorten(pattern, 80))}"'
        if not isinstance(raw, str) or not raw:
            return ToolView(title)
        try:
            path = lexical(raw, context.cwd)
        except ToolError:
            return ToolView(title)
        where = shorten(shown(path, (context.cwd,)))
        return ToolView(title if where == "." else f"{title} in {where}", (Location(str(path)),))

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Reads the folder."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        return await path_request("read", given.text("path", "."), context)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The matching lines. Raises ToolError: outside the roots, missing, not a pattern."""
        given = check(self.spec.name, _PARAMETERS, arguments)
        most = given.integer("max_results", _RESULTS)
        query, program, guarded = await in_thread(lambda _: self._prepare(given, most, context))
        found, why_plain = await self._search(query, program)
        _refuse_failure(found)
        if guarded:
            await in_thread(lambda _: _leave_out_secrets(found, query))
        return ToolOutcome(_report(found, query, most, context, self._time_limit, why_plain))

    async def _search(self, query: Query, program: str | None) -> tuple[Found, str]:
        """What was found, and why the pattern was taken for plain text ('': it was not).

        What ripgrep's expressions have not, Python's may have; what is none of either is looked for as it is.
        """
        wrong = ""
        others = [(query, None)] if program and sys.executable else []
        for one, engine in ((query, program), *others, (replace(query, plain=True), program)):
            launch = search_process.ripgrep(engine, one) if engine else search_process.python(one)
            found = await search_process.run(launch, max_hits=one.max_hits, time_limit=self._time_limit)
            if found.complete or found.hits or not _NO_PATTERN.search(found.errors):
                break
            reason = _REASON.search(found.errors)
            wrong = wrong or (reason[1] or reason[2] if reason else "it cannot be compiled")
        return found, wrong if one.plain else ""

    def _prepare(self, given: Arguments, most: int, context: ToolContext) -> tuple[Query, str | None, bool]:
        # In JSON `\b` is a backspace, which nobody looks for.
        pattern = given.text("pattern").replace("\b", r"\b")
        _refuse_pattern(pattern)
        place, guarded = _target(given.text("path", "."), context)
        globs = tuple(filter(None, (given.text("glob"),)))
        query = Query(
            pattern,
            place.root,
            "/".join(place.parts) or ".",
            globs,
            given.flag("case_sensitive", True),
            # One more than asked for: only so is it known whether there are others.
            most + 1,
        )
        return query, self._find_ripgrep(context.roots), guarded


def _leave_out_secrets(found: Found, query: Query) -> None:
    """What was not asked for by its name is not shown on the way."""
    paths = {hit.path for hit in found.hits}
    secret = {
        path
        for path in paths
        if is_secret(Place(query.root, tuple(path.removeprefix("./").split("/")), quote(path)))
    }
    found.hits = [hit for hit in found.hits if hit.path not in secret]
    found.withheld = len(secret)


def _target(raw: str, context: ToolContext) -> tuple[Place, bool]:
    """The place to search, and whether files with secrets are to be left out there."""
    place = locate(raw, context)
    status = stat_place(place)
    if status is None:
        raise missing(raw, place)
    if S_ISREG(status.st_mode) and status.st_size > MAX_FILE:
        size = f"{status.st_size:,} bytes; at most {MAX_FILE:,} are searched"
        raise ToolError(f"{shorten(place.shown)} is too large ({size}); read parts of it with read_file")
    if not S_ISREG(status.st_mode) and not S_ISDIR(status.st_mode):
        raise ToolError(f"{shorten(place.shown)} is {kind(status.st_mode)}, not a file or folder")
    return place, S_ISDIR(status.st_mode) and not (place.parts and is_secret(place))


def _refuse_pattern(pattern: str) -> None:
    if not pattern:
        raise ToolError("pattern is empty")
    if len(pattern) > _MAX_PATTERN:
        raise ToolError(f"pattern is too long ({len(pattern)} characters; at most {_MAX_PATTERN})")
    if re.search("[\0\n\ud800-\udfff]", pattern):
        raise ToolError(
            "pattern holds a character that no line can hold (NUL, line feed or half a surrogate pair)"
        )


def _refuse_failure(found: Found) -> None:
    if found.complete or found.timed_out or found.hits:
        return
    reason = found.errors.strip() or found.ending or "it did not end"
    raise ToolError(f"the search failed: {shorten(reason, 500)}")


def _report(
    found: Found, query: Query, most: int, context: ToolContext, time_limit: float, why_plain: str
) -> str:
    hits = [hit for hit in found.hits if hit.path not in found.binary]
    lines = [_line(hit, query, context) for hit in hits[:most]]
    files = len({hit.path for hit in hits[:most]})
    if len(hits) > most:
        notes = [f"stopped at {most} matching lines; there are more: narrow pattern, path or glob"]
    else:
        notes = [f"{_count(len(lines), 'matching line')} in {_count(files, 'file')}" if lines else "no match"]
    if why_plain:
        notes.append(f"pattern is no regular expression ({shorten(why_plain, 80)}): searched as plain text")
    if found.withheld:
        notes.append(f"{_count(found.withheld, 'file')} that may hold secrets left out")
    if found.timed_out:
        notes.append(
            f"stopped after {time_limit:g} s, not all was searched: try a simpler pattern or a narrower path"
        )
    elif not found.complete and len(hits) <= most:
        notes.append(f"the search broke off: {shorten(found.errors.strip() or found.ending)}")
    elif unread := found.errors.count("\n"):
        notes.append(f"files or folders that could not be read: {unread}")
    return "\n".join([*lines, f"[{'; '.join(notes)}]"])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _line(hit: Hit, query: Query, context: ToolContext) -> str:
    path = relative(query.root / hit.path.removeprefix("./"), context.roots)
    text = hit.text.rstrip("\r\n")
    if len(text) > _SHOWN_LINE:
        text = _around(text, len(text.encode("utf-8", "replace")[: hit.offset].decode("utf-8", "ignore")))
    return f"{quote(path)}:{hit.line}: {_CONTROLS.sub(_escape, text)}"


def _around(text: str, at: int) -> str:
    """The part of a long line in which the match begins."""
    start = max(0, min(at - _SHOWN_LINE // 4, len(text) - _SHOWN_LINE))
    end = start + _SHOWN_LINE
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
