"""How deep a text nests, told before and after it is parsed. Pure; knows no setting.

`tomllib` keeps every prefix of a dotted key, so its memory grows with the square of a key's parts: one line
of a checked-out file could take all there is. Such a text must not reach it.
"""

import re

MAX_DEPTH = 32
"""Levels that any source may nest; settings use four, a provider's options a few more."""

# Compiled when a suspicious line asks for it, which is hardly ever. A string that never ends takes the rest,
# so that every character is looked at once.
_TOKEN = (
    r"(?P<comment>#[^\n]*)"
    r'|(?P<word>"""(?:\\.|[^\\])*?(?:"""|\Z)"{0,2}'
    r"|'''.*?(?:'''|\Z)'{0,2}"
    r'|"(?:\\.|[^"\\\n])*(?:"|$)'
    r"|'[^'\n]*(?:'|$)"
    r"|[A-Za-z0-9_-]+)"
    r"|(?P<space>[ \t]+)|(?P<dot>\.)|(?P<other>.)"
)


def long_key_line(text: str) -> int | None:
    """The line of a dotted key with more than MAX_DEPTH parts; None if there is none."""
    if all(line.count(".") < MAX_DEPTH for line in text.split("\n")):
        return None
    dots, last = 0, "other"
    for token in re.finditer(_TOKEN, text, re.DOTALL | re.MULTILINE):
        kind = token.lastgroup or "other"
        if kind == "space":
            continue
        if kind == "dot" and last == "word":
            dots += 1
        elif not (kind == "word" and last == "dot"):
            dots = 0
        if dots >= MAX_DEPTH:
            return text.count("\n", 0, token.start()) + 1
        last = kind
    return None


def is_deep(value: object) -> bool:
    """Whether tables and lists in `value` nest deeper than MAX_DEPTH."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        tables = [inner for around in level if isinstance(around, dict) for inner in around.values()]
        lists = [inner for around in level if isinstance(around, list) for inner in around]
        level = tables + lists
        if not level:
            return False
    return True
