"""`SqliteStore` is here for programs; it is loaded when it is first asked for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.store.sqlite.store import SqliteStore as SqliteStore


def __getattr__(name: str) -> object:
    if name == "SqliteStore":
        from runtime.store.sqlite.store import SqliteStore

        return SqliteStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
