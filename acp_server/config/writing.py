"""Keys set in the user's settings file, everything else in it left as it is, comments too.

TOML is edited line by line, and the result is believed only if it reads as it should; a file that is written
too freely for that is left alone.
"""

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

from acp_server.config.files import locate
from acp_server.config.layers import Key, Tree, key_text, put, subtree
from runtime.values.errors import ConfigError
from runtime.values.file_access import reading, writing

Wanted = Mapping[Key, str | int | float | bool]
"""Keys with the values that they shall have."""


def lines_of(wanted: Wanted) -> str:
    """The keys as a TOML text of their own."""
    return with_keys("", wanted) or ""


def with_keys(text: str, wanted: Wanted) -> str | None:
    """The text with the keys set; None when it cannot be edited so. The text must be valid TOML."""
    aim: Tree = deepcopy(tomllib.loads(text))
    made = text
    for table, names in _tables(wanted).items():
        made = _with_table(made, table, {name: wanted[(*table, name)] for name in names})
    for key, value in wanted.items():
        put(aim, key, value)
    try:
        return made if tomllib.loads(made) == aim else None
    except ValueError:
        return None


def write_user_file(path: Path, text: str) -> Path | None:
    """Put the text in the file's place at once; returns where the former one is kept, None if there was none.

    A link to the file stays one. Raises ConfigError.
    """
    real = Path(os.path.realpath(path))
    new, kept = real.with_name(f"{real.name}.{os.getpid()}.new"), real.with_name(f"{real.name}.bak")
    try:
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = real.exists()
        mode = real.stat().st_mode & 0o777 if there else 0o600
        if there:
            with reading(real) as old, writing(kept) as copy:
                copy.write(old.read())
            kept.chmod(mode)
        with writing(new) as file:
            file.write(text.encode())
        new.chmod(mode)
        os.replace(new, real)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
    return kept if there else None


def _tables(keys: Iterable[Key]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = {}
    for key in keys:
        found.setdefault(key[:-1], []).append(key[-1])
    return found


def _with_table(text: str, table: Key, values: Mapping[str, object]) -> str:
    """The text with values in one table: in the line of a key that is there, else behind the header."""
    tree, places = tomllib.loads(text), locate(text)
    lines = text.split("\n")
    missing = []
    for name, value in values.items():
        if subtree(tree, (*table, name)) is None:
            missing.append(_line(name, value))
        else:
            lines[places[(*table, name)] - 1] = _line(name, value)
    header = _header(lines, table, places.get(table))
    if not missing:
        return "\n".join(lines)
    if header is None:
        kept = "\n".join(lines).rstrip("\n")
        return "\n".join([*([kept, ""] if kept else []), f"[{key_text(table)}]", *missing, ""])
    return "\n".join([*lines[:header], *missing, *lines[header:]])


def _header(lines: list[str], table: Key, line: int | None) -> int | None:
    """How many lines reach to the table's own header, that included; None when it has none."""
    if line is None:
        return None
    wanted: Tree = {}
    put(wanted, table, {})
    try:
        return line if tomllib.loads(lines[line - 1]) == wanted else None
    except ValueError:
        return None


def _line(name: str, value: object) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"{key_text((name,))} = {text}"
