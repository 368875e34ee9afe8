"""Which tools there are, by name. A tool's module is imported when the tool is first asked for."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import cast

from runtime.errors import ConfigError
from runtime.ports import Tool

_FACTORIES = {
    "read_file": ("runtime.tools.read_file", "ReadFile"),
    "list_dir": ("runtime.tools.list_dir", "ListDir"),
    "search_text": ("runtime.tools.search_text", "SearchText"),
}


def names() -> tuple[str, ...]:
    """All names, in the order in which a model is told of the tools."""
    return tuple(_FACTORIES)


def load(name: str) -> Tool:
    """A new tool. Raises ConfigError for a name that is not in the catalog."""
    if name not in _FACTORIES:
        raise ConfigError(f"there is no tool named {name!r}; known: {', '.join(_FACTORIES)}")
    module, factory = _FACTORIES[name]
    return cast(Callable[[], Tool], getattr(import_module(module), factory))()


def load_all(wanted: Iterable[str] | None = None) -> tuple[Tool, ...]:
    """The tools named, in that order; None: all. Raises ConfigError."""
    return tuple(load(name) for name in (names() if wanted is None else wanted))
