"""From a setting to a store, and where the store lies unless someone says otherwise.

The catalog of stores: knows their names, not their workings.
"""

import os
from collections.abc import Callable
from pathlib import Path

from runtime.store.memory import MemoryStore
from runtime.values.errors import ConfigError
from runtime.values.stored import Store

DATA_DIR_VARIABLE = "WHOLETURN_DATA_DIR"
FILE_NAME = "sessions.db"


def default_store_path() -> Path:
    """`sessions.db` in the folder that WHOLETURN_DATA_DIR names, else in the user's data folder."""
    folder = os.environ.get(DATA_DIR_VARIABLE)
    if folder:
        return Path(folder).expanduser().absolute() / FILE_NAME
    import platformdirs  # 4 to 8 ms, and not needed when the folder is named

    return platformdirs.user_data_path("wholeturn", appauthor=False) / FILE_NAME


MEMORY = "memory"
USABLE = 'use "memory", the path of a file, or postgresql://…'


def open_store(
    target: str | Path | None = None, *, on_trouble: Callable[[str], None], eager: bool = False
) -> Store:
    """The store that `target` names: "memory", a path, the address of a server, or None for the default path.

    Touches no disk itself; the file, or the server, is opened at the first use, or a file with `eager` in the
    background right away. on_trouble gets a sentence for the person, once per trouble, in trio's thread; the
    store goes on in memory meanwhile. Raises ConfigError on an address that cannot be used.
    """
    if target == MEMORY:
        return MemoryStore()
    if "://" in str(target):
        return _open_server(str(target), on_trouble)
    return _open_file(_path_of(target), on_trouble, eager)


def _path_of(target: str | Path | None) -> Path:
    return Path(target).expanduser().absolute() if target else default_store_path()


def _open_server(address: str, on_trouble: Callable[[str], None]) -> Store:
    from runtime.store.common.faults import is_address, masked

    if not is_address(address):
        raise ConfigError(f'store = "{masked(address)}": {USABLE}')
    try:
        from runtime.store.postgres.connections import unreadable
        from runtime.store.postgres.store import PostgresStore
    except ImportError as error:
        raise ConfigError(
            f"store = \"{masked(address)}\" needs a driver ({error}): pip install 'wholeturn[postgres]'"
        ) from error
    if fault := unreadable(address):
        raise ConfigError(f'store = "{masked(address)}": {fault}')
    from runtime.store.resilient.store import ResilientStore

    return ResilientStore(PostgresStore(address), on_trouble=on_trouble, name=masked(address))


def _open_file(path: Path, on_trouble: Callable[[str], None], eager: bool) -> Store:
    from runtime.store.resilient.store import ResilientStore
    from runtime.store.sqlite.store import SqliteStore

    store = SqliteStore(path, on_repair=on_trouble, eager=eager)
    return ResilientStore(store, on_trouble=on_trouble, name=str(path))
