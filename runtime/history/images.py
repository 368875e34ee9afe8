"""Image markers in text and declared attachments: which of them cost an image. Opens nothing."""

import json
import re
from dataclasses import dataclass

from runtime.rows import Attachment, Row

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
