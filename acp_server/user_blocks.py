"""A stored prompt block as blocks that may be sent back: split, cut or named when too large for a line.

The transcript keeps the whole block; only what goes over the wire is smaller. Knows no session.
"""

from collections.abc import Mapping

from acp_server.wire_text import cut, is_within, split

_BLOCK_LIMIT = 4 * 1024 * 1024
"""Bytes of a whole block as JSON."""


_TEXTS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("name", "uri"),
    "resource": (),
}
"""The kinds of blocks, with the texts that each needs."""


def sendable_blocks(block: Mapping[str, object]) -> list[dict[str, object]]:
    """The block without nulls, or what stands for it: pieces of a text, a cut resource, a line naming it."""
    whole = _without_nulls(block)
    if not _is_known(whole):
        return [{"type": "text", "text": "[a block of this prompt cannot be shown again]"}]
    text = whole.get("text")
    if is_within(whole, _BLOCK_LIMIT):
        return [whole]
    if isinstance(text, str):
        return [{"type": "text", "text": piece} for piece in split(text)]
    return [_smaller(whole)]


def _is_known(block: Mapping[str, object]) -> bool:
    """Whether a client can be expected to take it: a transcript may come from elsewhere."""
    kind, contents = block.get("type"), block.get("resource")
    texts = _TEXTS.get(kind) if isinstance(kind, str) else None
    if texts is None or not all(isinstance(block.get(name), str) for name in texts):
        return False
    if kind != "resource":
        return True
    parts = [contents.get(name) for name in ("uri", "text", "blob")] if isinstance(contents, dict) else [None]
    return isinstance(parts[0], str) and any(isinstance(part, str) for part in parts[1:])


def _smaller(block: Mapping[str, object]) -> dict[str, object]:
    contents = block.get("resource")
    if isinstance(contents, dict):
        uri, text = contents.get("uri"), contents.get("text")
        shorter = {"uri": uri, "text": cut(text) if isinstance(text, str) else ""}
        if isinstance(text, str) and is_within(shorter, _BLOCK_LIMIT):
            return {"type": "resource", "resource": shorter}
    kind = block.get("type")
    return {"type": "text", "text": f"[{kind} block of this prompt is too large to be shown again]"}


def _without_nulls(block: Mapping[str, object]) -> dict[str, object]:
    """Some clients refuse an optional value that is null. What is in `_meta` is not ours to change."""
    return {
        key: _without_nulls(value) if isinstance(value, dict) and key != "_meta" else value
        for key, value in block.items()
        if value is not None
    }
