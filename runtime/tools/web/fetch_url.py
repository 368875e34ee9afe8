"""fetch_url: a page of the web as text that a model can read. How it is fetched is in `page`.

Of HTML there remain headings, lists, links and what is set as code; no layout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import trio

from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Parameter, ToolSettings, check, tool_spec
from runtime.tools.sandbox.paths import in_thread, shorten
from runtime.tools.sandbox.sensitive_files import hides_something
from runtime.values.errors import ToolError
from runtime.values.events import ToolKind

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "nav"})
_BLOCKS = frozenset(
    {
        *("p", "div", "section", "article", "header", "footer", "main", "aside", "table", "tr", "ul", "ol"),
        *("dl", "dt", "dd", "blockquote", "figure", "figcaption", "form", "pre", "hr", "br", "li", "title"),
        *("h1", "h2", "h3", "h4", "h5", "h6"),
    }
)
_LEADS = {"li": "- ", **{f"h{level}": f"{'#' * level} " for level in range(1, 7)}}
_CELLS = frozenset({"td", "th"})
_PIECE = 65536
_OPEN_END = 2000
"""Characters looked at of a tag or remark that the page ends in: each `<` there is tried to the end."""


def html_to_text(html: str, base: str, stopped: Callable[[], bool] = lambda: False) -> str:
    """The text. base: the page's address, for links that are relative. Ends early when `stopped`."""
    reader = _Reader(base)
    for at in range(0, len(html), _PIECE):
        if stopped():
            break
        reader.feed(html[at : at + _PIECE])
    reader.finish()
    lines = (line.rstrip() for line in "".join(reader.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


class _Reader(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._base = base
        self._skipping: list[str] = []
        self._code = 0
        self._link = ""
        self._link_at = 0

    def finish(self) -> None:
        """The page has ended. Of what it left open a browser shows nothing."""
        if self.rawdata.startswith("<"):
            self.rawdata = self.rawdata[:_OPEN_END]
        self.close()

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """`<![if IE]>`: a remark to browsers. The parser's own reading fails at some."""
        return self.parse_bogus_comment(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            if tag == "nav" and not self._skipping:
                self._break()
            if tag not in self._skipping:
                self._skipping.append(tag)
        elif not self._skipping:
            self._open(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            # An end without its beginning ends nothing; one that was left out ends with the one around it.
            if tag in self._skipping:
                del self._skipping[self._skipping.index(tag) :]
        elif not self._skipping:
            self._close(tag)

    def handle_data(self, data: str) -> None:
        if self._skipping:
            return
        if self._code:
            self.parts.append(data)
        elif text := re.sub(r"\s+", " ", data):
            self.parts.append(text.lstrip() if self._at_start() else text)

    def _open(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag in _BLOCKS:
            self._break()
            self.parts.append(_LEADS.get(tag, ""))
        elif tag in _CELLS and not self._at_start():
            self.parts.append(" | ")
        if tag == "pre":
            self._code += 1
        if tag == "a":
            self._link, self._link_at = attributes.get("href") or "", len(self.parts)

    def _close(self, tag: str) -> None:
        if tag == "pre":
            self._code = max(0, self._code - 1)
        if tag in _BLOCKS:
            self._break()
        if tag == "a" and self._link:
            self._end_link()

    def _end_link(self) -> None:
        try:
            address = urljoin(self._base, self._link)
        except ValueError:
            address = ""
        text = "".join(self.parts[self._link_at :]).strip()
        if address.startswith(("http://", "https://")) and text and "#" not in self._link[:1]:
            self.parts.append(f" ({address})")
        self._link = ""

    def _break(self) -> None:
        if not self._at_start():
            self.parts.append("\n")

    def _at_start(self) -> bool:
        last = next((part for part in reversed(self.parts[-4:]) if part), "\n")
        return last.endswith("\n")


if TYPE_CHECKING:
    from runtime.tools.web.page import Page

TIME_LIMIT = 30.0
"""Seconds for all of it."""
MAX_TEXT = 200_000
"""Most characters given."""
_TEXT_KINDS = ("text/", "application/json", "application/xml", "application/javascript", "application/toml")
_TEXT_ENDS = ("+json", "+xml", "yaml", "/x-ndjson", "/ecmascript", "/x-sh")

_PARAMETERS = (Parameter("url", "string", required=True, example="https://example.org/"),)


class FetchUrl:
    """Fetches with GET, without credentials. Addresses of this machine's network only if settings say so."""

    spec = tool_spec("fetch_url", "Fetch a web page as text.", _PARAMETERS)
    kind: ToolKind = "fetch"

    def __init__(self, settings: ToolSettings | None = None) -> None:
        self._private = (settings or ToolSettings()).private_addresses

    def view(self, arguments: Mapping[str, object], context: ToolContext) -> ToolView:
        """`Fetch https://example.org/`."""
        url = arguments.get("url")
        if not isinstance(url, str):
            return ToolView("Fetch a page")
        return ToolView(f"Fetch {shorten(url if url.isprintable() else json.dumps(url), 300)}")

    async def request(self, arguments: Mapping[str, object], context: ToolContext) -> ToolRequest:
        """Fetches the address. Raises ToolError for one that is not of the web."""
        # The HTTP client takes long to import and is needed for this alone.
        from runtime.tools.web.page import checked

        url = check(self.spec.name, _PARAMETERS, arguments).text("url")
        address = str(checked(url))
        risk = "it holds characters that cannot be seen" if hides_something(url) else ""
        return ToolRequest("fetch", address, risk=risk)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The page's text. Raises ToolError: no such page, a private address, no text, too slow."""
        from runtime.tools.web.page import CheckedBackend, fetch

        url = check(self.spec.name, _PARAMETERS, arguments).text("url")
        with trio.move_on_after(TIME_LIMIT):
            page = await fetch(url, CheckedBackend(private=self._private))
            return await in_thread(lambda stopped: _outcome(page, stopped))
        raise ToolError(f"{shorten(url)} did not answer within {TIME_LIMIT:g} s")


def _outcome(page: Page, stopped: Callable[[], bool]) -> ToolOutcome:
    if page.moved:
        return ToolOutcome(
            f"[{shorten(page.address)} leads to another site; to follow it, fetch {page.moved}]"
        )
    if not page.kind.startswith(_TEXT_KINDS) and not page.kind.endswith(_TEXT_ENDS):
        raise ToolError(
            f"{shorten(page.address)} is {page.kind} ({len(page.body):,} bytes), which is no text"
        )
    # Its parser brings all names of HTML's characters.

    text = _decoded(page)
    if page.kind in ("text/html", "application/xhtml+xml"):
        text = html_to_text(text, page.address, stopped)
    notes = [] if page.status == 200 else [f"status {page.status}"]
    notes += [] if page.complete and len(text) <= MAX_TEXT else ["the rest is left out"]
    text = text[:MAX_TEXT]
    notes += [] if text.strip() else ["the page has no text"]
    said = f"\n[{'; '.join(notes)}]" if notes else ""
    return ToolOutcome(text + said, failed=page.status >= 400)


def _decoded(page: Page) -> str:
    try:
        return page.body.decode(page.charset or "utf-8", "replace")
    except (LookupError, UnicodeError):
        return page.body.decode("utf-8", "replace")
