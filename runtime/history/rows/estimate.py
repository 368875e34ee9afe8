"""What rows, pictures and tool schemas cost, in tokens, before a provider has counted them. Knows no limit.

Image markers in text and declared attachments cost an image each where they can be loaded; nothing is opened.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring

from runtime.history.rows.boundaries import is_tool_result_carrier, opens_retention_turn
from runtime.history.rows.token_counter import HEURISTIC, SightlessCounter, TokenCounter
from runtime.values.rows import Attachment, Row, ToolCall, ToolSpec

IMAGE_TOKENS = 1600
"""Flat price of one picture, tokens, whatever its size."""

MARKER_OPEN = "[IMAGE:"
_MARKER = re.compile(r"\[IMAGE:([^\]]*)\]")
_WRAP = re.compile(r"[\r\n]+\s*")
_LOADABLE = re.compile(r"/|https?://|data:|[A-Za-z]:[\\/]|\\\\[^\\?.][^\\]*\\[^\\]")


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures found in a row and the text that is left to price as text."""

    count: int
    text: str


def is_loadable(target: str) -> bool:
    """True for a path, an http(s) or data address, a drive or share path; line wraps are undone first."""
    return _LOADABLE.match(_WRAP.sub("", target).strip()) is not None


def marked_pictures(text: str) -> Pictures:
    """Loadable `[IMAGE:target]` markers of a text, and the text without them."""
    if MARKER_OPEN not in text:
        return Pictures(0, text)
    found = 0

    def take(match: re.Match[str]) -> str:
        nonlocal found
        if not is_loadable(match[1]):
            return match[0]
        found += 1
        return ""

    rest = _MARKER.sub(take, text)
    return Pictures(found, rest)


def declared_pictures(row: Row) -> Pictures:
    """Declared image attachments of a carrier: its own field, or those named in its JSON content.

    The bytes of a counted target are taken out of the text.
    """
    own = sum(1 for item in row.attachments if _counts(item))
    text = row.content
    if not text.startswith("{") or '"attachments"' not in text:
        return Pictures(own, text)
    targets = [item.target for item in _envelope_attachments(text) if _counts(item)]
    for target in targets:
        text = text.replace(json.dumps(target, ensure_ascii=False)[1:-1], "", 1)
    return Pictures(own + len(targets), text)


def _counts(item: Attachment) -> bool:
    return item.kind == "image" and is_loadable(item.target)


def _envelope_attachments(text: str) -> list[Attachment]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return []
    listed = value.get("attachments") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return []
    return [
        Attachment(item["kind"], item["target"])
        for item in listed
        if isinstance(item, dict)
        and isinstance(item.get("kind"), str)
        and isinstance(item.get("target"), str)
    ]


ROW_TOKENS = 4
"""Framing of a row or of a tool schema."""
UNSEEN_TOKENS = 32
"""The line that stands for a picture where the model cannot see."""


@dataclass(frozen=True, slots=True)
class RowPrice:
    """A row's price and how many pictures are in it (at IMAGE_TOKENS each, included)."""

    tokens: int
    images: int = 0


def price_row(row: Row, *, current: bool, counter: TokenCounter = HEURISTIC) -> RowPrice:
    """The row's price. `current`: it stands in the newest turn.

    Only there are declared pictures, and reasoning that the provider wants back, still sent.
    """
    images = 0
    text = row.content
    if row.images or row.attachments or MARKER_OPEN in text or text.startswith("{"):
        images, text = _pictures(row, current)
    sent_back = (row.reasoning,) if current and row.reasoning else ()
    count = counter.count(text, *map(call_json, row.tool_calls), *sent_back)
    if images and isinstance(counter, SightlessCounter):
        return RowPrice(count + ROW_TOKENS + images * UNSEEN_TOKENS)
    return RowPrice(count + ROW_TOKENS + images * IMAGE_TOKENS, images)


def _pictures(row: Row, current: bool) -> tuple[int, str]:
    if is_tool_result_carrier(row):
        if not current:
            return 0, row.content
        declared = declared_pictures(row)
        return declared.count, declared.text
    if row.role != "user":
        return 0, row.content
    marked = marked_pictures(row.content)
    return marked.count + len(row.images), marked.text


def call_json(call: ToolCall) -> str:
    """The call as compact JSON, keys in this order, no ASCII escapes, `arguments` as the string it is."""
    quoted = map(encode_basestring, (call.id, call.name, call.arguments))
    return '{"id":%s,"name":%s,"arguments":%s}' % tuple(quoted)  # noqa: UP031 (twice as fast)


def current_turn_start(rows: Sequence[Row]) -> int:
    """Index of the row that opened the newest user turn; len(rows) when there is none."""
    for index in range(len(rows) - 1, -1, -1):
        if opens_retention_turn(rows[index]):
            return index
    return len(rows)


def price_rows(rows: Sequence[Row], counter: TokenCounter = HEURISTIC) -> list[int]:
    """The price of each row of a whole history, tokens."""
    start = current_turn_start(rows)
    return [price_row(row, current=index >= start, counter=counter).tokens for index, row in enumerate(rows)]


def estimate_history_tokens(rows: Sequence[Row], counter: TokenCounter = HEURISTIC) -> int:
    """Tokens of a whole history: the plain sum of its rows, 0 for none."""
    return sum(price_rows(rows, counter))


def system_floor(rows: Iterable[Row], counter: TokenCounter = HEURISTIC) -> int:
    """Tokens of all system rows, wherever they stand."""
    return sum(price_row(row, current=False, counter=counter).tokens for row in rows if row.role == "system")


def estimate_tool_schemas(tools: Iterable[ToolSpec], counter: TokenCounter = HEURISTIC) -> int:
    """Tokens of the tool list as the model is told it, 0 for none."""
    return sum(_schema_tokens(tool, counter) for tool in tools)


@lru_cache(maxsize=1024)
def _schema_tokens(tool: ToolSpec, counter: TokenCounter) -> int:
    return counter.count(tool.name, tool.description, tool.parameters) + ROW_TOKENS
