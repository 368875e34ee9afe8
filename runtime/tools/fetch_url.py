"""fetch_url: a page of the web as text. Knows what may be shown; how it is fetched is in `fetching`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import trio

from runtime.errors import ToolError
from runtime.events import ToolKind
from runtime.ports import ToolContext, ToolOutcome, ToolRequest, ToolView
from runtime.tools.arguments import Parameter, check, tool_spec
from runtime.tools.offload import in_thread
from runtime.tools.paths import shorten
from runtime.tools.sensitive import hides_something
from runtime.tools.settings import ToolSettings

if TYPE_CHECKING:
    from runtime.tools.fetching import Page

TIME_LIMIT = 30.0
"""Seconds for all of it."""
MAX_TEXT = 200_000
"""Most characters given."""
_TEXT_KINDS = ("text/", "application/json", "application/xml", "application/javascript", "application/toml")
_TEXT_ENDS = ("+json", "+xml", "yaml", "/x-ndjson", "/ecmascript", "/x-sh")

_PARAMETERS = (Parameter("url", "string", required=True),)


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
        from runtime.tools.fetching import checked

        url = check(self.spec.name, _PARAMETERS, arguments).text("url")
        address = str(checked(url))
        risk = "it holds characters that cannot be seen" if hides_something(url) else ""
        return ToolRequest("fetch", address, risk=risk)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """The page's text. Raises ToolError: no such page, a private address, no text, too slow."""
        from runtime.tools.fetching import CheckedBackend, fetch

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
    from runtime.tools.html_text import html_to_text

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
