"""What all adapters need to write JSON that servers take: pure. Knows no API.

Rules that hold for every one of them:
* text that is blank is sent as "(empty)", since several servers refuse empty content;
* the arguments of a call that are a JSON object go out as they were received. Anything else is refused
  by servers that parse them, for good, so an empty string becomes {} and broken text is wrapped as
  {"invalid_arguments": TEXT}: the model still sees what it wrote.
"""

import hashlib
import json
import re

import orjson

from runtime.values.texts import mended

EMPTY = "(empty)"
MAX_ID = 64
"""Characters of a call's id that every server takes."""

_ODD = re.compile(r"[^A-Za-z0-9_-]")
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def is_blank(text: str) -> bool:
    """Whether a server may take the text for no content."""
    return not text or text.isspace()


def filled(text: str) -> str:
    """The text, or what stands for none."""
    return EMPTY if is_blank(text) else text


def safe_arguments(arguments: str) -> str:
    """The text of a JSON object: the one received, or a stand-in (see above)."""
    if is_blank(arguments):
        return "{}"
    try:
        value: object = orjson.loads(mended(arguments))
    except orjson.JSONDecodeError:
        value = arguments
    if isinstance(value, dict):
        return arguments
    return "{}" if value is None else json.dumps({"invalid_arguments": arguments}, ensure_ascii=False)


def raw(text: str) -> orjson.Fragment:
    """JSON text that goes into an object as it is."""
    return orjson.Fragment(mended(text))


def fitting_id(ident: str) -> str:
    """The id as every server takes it: letters, digits, - and _, at most MAX_ID of them.

    The same for a call and its result, and different ids stay different.
    """
    if ident and len(ident) <= MAX_ID and not _ODD.search(ident):
        return ident
    digest = hashlib.sha256(ident.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_ODD.sub('_', ident)[: MAX_ID - 13]}_{digest}"


def fitting_name(name: str) -> str:
    """A tool's name as every server takes it: models make up odd ones."""
    return _ODD.sub("_", name)[:MAX_ID] or "unnamed"


def data_uri(uri: str) -> tuple[str, str] | None:
    """(MIME type, base64 data) of a `data:` URI; None for any other."""
    found = _DATA.fullmatch(uri)
    return (found[1], found[2]) if found else None


def unsent_image(what: str) -> str:
    """The text that stands for a picture that cannot be sent, so that the model knows there was one."""
    return f"[image that could not be sent: {what}]"


def dumps(value: dict[str, object]) -> bytes:
    """The object as compact JSON, whatever text is in it. It holds no line break."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # Lone surrogates, out of a tool's output or a file name: not encodable as they are.
        return orjson.dumps(_mended(value))


def json_text(value: object) -> str:
    """Any decoded JSON value as text again; '' for one that nests too deep."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        pass
    try:
        return mended(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (ValueError, RecursionError):
        return ""


def _mended(value: object) -> object:
    """The value with every text in it mended; JSON that is already encoded stays as it is."""
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, dict):
        return {mended(key): _mended(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mended(inner) for inner in value]
    return value
