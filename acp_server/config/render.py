"""Settings in force as text of 80 columns or as JSON. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from acp_server.config.effective import Setting
from acp_server.config.keys import key_text, printable
from acp_server.config.layers import Layer
from acp_server.config.load import View
from acp_server.config.paths import short

WIDTH = 80
COLUMN = 56
FILES: Mapping[str, str] = {"user": "user", "project": "project", "file": "--config"}


def as_text(view: View, settings: Sequence[Setting], untrusted: bool) -> str:
    """A TOML-like listing; each value is followed by its place, files by the short name in the head."""
    lines = [*_head(view, untrusted), *_body(settings)]
    for text in view.config.warnings:
        lines += ["", *wrap(f"warning: {text}", WIDTH, break_long_words=False, break_on_hyphens=False)]
    return "\n".join(lines)


def as_json(view: View, settings: Sequence[Setting], untrusted: bool) -> str:
    """{"sources": [{source, name, trusted?}], "settings": [{key, value, source, …}], "warnings": [text]}."""
    document = {
        "sources": [_source(layer, untrusted) for layer in _files(view)],
        "settings": [_entry(setting) for setting in settings],
        "warnings": list(view.config.warnings),
    }
    return json.dumps(document, indent=2)


def _files(view: View) -> list[Layer]:
    return [layer for layer in view.layers if layer.source in FILES]


def _source(layer: Layer, untrusted: bool) -> dict[str, object]:
    trusted = {"trusted": not untrusted} if layer.source == "project" else {}
    return {"source": layer.source, "name": layer.name, **trusted}


def _entry(setting: Setting) -> dict[str, object]:
    origin = setting.origin
    place = {"name": origin.name} | ({"line": origin.line} if origin.line else {}) if origin.name else {}
    note = {"is_set": setting.note != "not set"} if setting.note else {}
    return {"key": key_text(setting.key), "value": setting.value, "source": origin.source, **place, **note}


def _head(view: View, untrusted: bool) -> Iterator[str]:
    files = _files(view)
    yield "# Settings in force. Later sources win: files, variables, flags."
    if not files:
        yield "# No settings file was found; `wholeturn config path` tells where one is looked for."
    for layer in files:
        note = " (not trusted)" if untrusted and layer.source == "project" else ""
        yield f"#   {FILES[layer.source]:<9}{short(layer.name)}{note}"


def _body(settings: Sequence[Setting]) -> Iterator[str]:
    table: tuple[str, ...] = ()
    for setting in settings:
        around = setting.key[:-1]
        if around != table or setting is settings[0]:
            table = around
            yield f"\n[{key_text(around)}]" if around else ""
        yield from _line(setting)


def _line(setting: Setting) -> Iterator[str]:
    left = f"{key_text(setting.key[-1:])} = {_value(setting.value)}"
    place = f"# {_place(setting)}"
    if len(left) <= COLUMN - 2 or len(left) + 2 + len(place) <= WIDTH:
        yield f"{left:<{COLUMN - 2}}  {place}" if len(place) <= WIDTH - COLUMN else f"{left}  {place}"
        return
    if isinstance(setting.value, list | tuple):
        yield f"{key_text(setting.key[-1:])} = ["
        yield from wrap(
            _value(setting.value)[1:-1],
            WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        left = "]"
    yield left  # a long value is shown whole all the same
    yield f"    {place}"


def _place(setting: Setting) -> str:
    origin = setting.origin
    shown = f"{FILES[origin.source]}:{origin.line}" if origin.source in FILES else str(origin)
    return f"{shown}, {setting.note}" if setting.note else shown


def _value(value: object) -> str:
    return "unset" if value is None else printable(json.dumps(value, ensure_ascii=False), 400)
