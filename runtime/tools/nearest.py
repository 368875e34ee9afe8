"""What to suggest for a path that leads to nothing: near names in the nearest folder. Blocks on the disk."""

import difflib
import itertools
import os

from runtime.errors import ToolError
from runtime.tools.paths import quote, shorten
from runtime.tools.roots import Place, opened_folder

_LOOKED_AT = 5_000
_SUGGESTED = 5


def missing(raw: str, place: Place) -> ToolError:
    """The error for a place that does not exist, with names that may have been meant."""
    for depth in range(len(place.parts) - 1, -1, -1):
        folder = Place(place.root, place.parts[:depth], "")
        names = _names(folder)
        if names is not None:
            return ToolError(_sentence(raw, place, depth, names))
    return ToolError(f"{shorten(place.shown)} does not exist{_tilde(raw)}")


def _names(folder: Place) -> list[str] | None:
    try:
        with opened_folder(folder) as handle, os.scandir(handle) as entries:
            return [entry.name for entry in itertools.islice(entries, _LOOKED_AT)]
    except OSError:
        return None


def _sentence(raw: str, place: Place, depth: int, names: list[str]) -> str:
    wanted = place.parts[depth]
    near = _close(wanted, names)
    what = shorten(place.shown)
    where = quote("/".join(place.parts[:depth])) if depth else "the top folder"
    if depth < len(place.parts) - 1:
        what += f" does not exist: there is no folder {shorten(quote(wanted), 80)} in {shorten(where)}"
    else:
        what += " does not exist"
    if near:
        what += f"; near names in {shorten(where)}: {', '.join(quote(name) for name in near)}"
    return what + _tilde(raw)


def _close(wanted: str, names: list[str]) -> list[str]:
    """Near by spelling, whatever the case, and names that share the stem."""
    folded = {name.casefold(): name for name in sorted(names)}
    close = difflib.get_close_matches(wanted.casefold(), folded, n=_SUGGESTED, cutoff=0.6)
    stem = wanted.casefold().partition(".")[0]
    alike = [name for name in folded if stem and name.partition(".")[0] == stem and name not in close]
    return [folded[name] for name in (close + alike)[:_SUGGESTED]]


def _tilde(raw: str) -> str:
    return " (`~` is not expanded; give the whole path)" if raw.startswith("~") else ""
