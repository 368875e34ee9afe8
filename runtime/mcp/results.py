"""What a server answered, as text for the model. Knows the protocol's JSON form and nothing of its origin."""

from collections.abc import Callable, Iterator, Mapping

import orjson

from runtime.mcp.text import one_line
from runtime.ports import ToolOutcome
from runtime.unicode_text import mended

MOST_CHARACTERS = 2_097_152
"""Taken of one result; the caller cuts further."""

_EMPTY = "(the tool gave no output)"


def outcome(result: Mapping[str, object]) -> ToolOutcome:
    """A tool's result. Structured content is shown when nothing else is, since servers send it twice."""
    blocks = list(_blocks(result.get("content")))
    structured = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        blocks.append({"type": "text", "text": _json(structured)})
    text = _joined(_shown(block) for block in blocks)
    return ToolOutcome(text or _EMPTY, failed=result.get("isError") is True)


def contents(result: Mapping[str, object]) -> str:
    """A resource that was read."""
    return _joined(_resource(part) for part in _blocks(result.get("contents"))) or "(the resource is empty)"


def _blocks(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, list):
        yield from (block for block in value if isinstance(block, dict))


def _joined(texts: Iterator[str]) -> str:
    text = mended("\n".join(text for text in texts if text))
    if len(text) <= MOST_CHARACTERS:
        return text
    return (
        f"{text[:MOST_CHARACTERS]}\n[... {len(text) - MOST_CHARACTERS:,} more characters were not taken in]"
    )


def _shown(block: Mapping[str, object]) -> str:
    kind = block.get("type")
    write = _WRITERS.get(kind) if isinstance(kind, str) else None
    return write(block) if write else f"[content of a kind that is not known here: {one_line(str(kind), 40)}]"


def _text(block: Mapping[str, object]) -> str:
    return str(block.get("text", ""))


def _media(block: Mapping[str, object]) -> str:
    kind = _word(block, "mimeType") or f"{block.get('type')} of an unnamed type"
    return f"[{kind}, about {_size(block.get('data')):,} bytes; it cannot be shown to you here]"


def _link(block: Mapping[str, object]) -> str:
    facts = [
        _word(block, "title") or _word(block, "name"),
        _word(block, "mimeType"),
        _word(block, "description"),
    ]
    told = "; ".join(fact for fact in facts if fact)
    return f"[resource {_word(block, 'uri')}{f': {told}' if told else ''}]"


def _embedded(block: Mapping[str, object]) -> str:
    inner = block.get("resource")
    return _resource(inner) if isinstance(inner, dict) else ""


def _resource(part: Mapping[str, object]) -> str:
    uri = _word(part, "uri")
    if "text" in part:
        return f"[{uri}]\n{part['text']}"
    kind = _word(part, "mimeType") or "bytes"
    return f"[{uri}: {kind}, about {_size(part.get('blob')):,} bytes, not text]"


def _size(encoded: object) -> int:
    return len(encoded) * 3 // 4 if isinstance(encoded, str) else 0


def _word(block: Mapping[str, object], name: str) -> str:
    value = block.get(name)
    return one_line(value, 300) if isinstance(value, str) else ""


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return ""


_WRITERS: Mapping[str, Callable[[Mapping[str, object]], str]] = {
    "text": _text,
    "image": _media,
    "audio": _media,
    "resource_link": _link,
    "resource": _embedded,
}
