"""HTML to text that a model can read: headings, lists, links and what is set as code; no layout. Pure."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import urljoin

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
