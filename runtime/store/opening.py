"""From a setting to a store. The catalog of stores: knows their names, not their workings."""

from collections.abc import Callable
from pathlib import Path

from runtime.errors import ConfigError
from runtime.store.memory import MemoryStore
from runtime.store.paths import default_store_path
from runtime.stored import Store

MEMORY = "memory"


def open_store(
    target: str | Path | None = None, *, on_trouble: Callable[[str], None], eager: bool = False
) -> Store:
    """The store that `target` names: "memory", a path, or None for the default path.

    Touches no disk itself; the file is opened at the first use, or with `eager` in the background right
    away. on_trouble gets a sentence for the person, once per trouble, in trio's thread; the store goes on
    in memory meanwhile. Raises ConfigError on a URL.
    """
    if target == MEMORY:
        return MemoryStore()
    if "://" in str(target):
        raise ConfigError(f'store = "{target}": use "memory" or the path of a file')
    return _open_file(_path_of(target), on_trouble, eager)


def _path_of(target: str | Path | None) -> Path:
    return Path(target).expanduser().absolute() if target else default_store_path()


def _open_file(path: Path, on_trouble: Callable[[str], None], eager: bool) -> Store:
    from runtime.store.resilient import ResilientStore
    from runtime.store.sqlite import SqliteStore

    store = SqliteStore(path, on_repair=on_trouble)
    if eager:
        store.warm_up()
    return ResilientStore(store, on_trouble=on_trouble)
