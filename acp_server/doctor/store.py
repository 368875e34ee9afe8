"""Checks of the session store, a file or a PostgreSQL server: looks, changes nothing, leaves no trace.

A database with an empty write-ahead log is read as it lies (`immutable`), since a plain reader would make
side files; one that is in use has them already. No password is shown.
"""

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from acp_server.assembly.extras import installing
from acp_server.config.paths import short
from acp_server.doctor.finding import Finding, Read
from runtime.store.common.faults import is_address, masked, scrubbed
from runtime.store.sqlite.connection import connect, is_text, wal_has_content
from runtime.store.sqlite.schema import SCHEMA_VERSION, is_foreign, read_version
from runtime.values.file_access import opened

if TYPE_CHECKING:
    from runtime.store.postgres.schema import Connection

SERVER_PATIENCE = 2
"""Seconds to log in."""
UNUSABLE = "Check the address, user and password, and whether the server runs."
_LOOK = """
    SELECT current_setting('server_encoding'), current_setting('transaction_read_only') = 'on',
        coalesce(current_schema(), ''), coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
        current_user::text, coalesce(to_regclass('wholeturn_schema')::text, '')
"""


class Seen(NamedTuple):
    """What a server tells of itself. may_create: tables in the schema. table: of the version, '' for none."""

    encoding: str
    only_reads: bool
    schema: str
    may_create: bool
    user: str
    table: str


def check_server(address: str) -> Finding:
    """Whether sessions can be kept there."""
    shown = masked(address)
    try:
        import psycopg as driver

        from runtime.store.postgres.schema import SCHEMA_VERSION as known
    except ImportError:
        mend = f"Install it: {installing('postgres')}"
        return Finding("store", "bad", f"The driver for {shown} is not installed.", mend)
    try:
        with closing(driver.connect(address, connect_timeout=SERVER_PATIENCE)) as connection:
            row = connection.execute(_LOOK).fetchone()
            seen = Seen(*(row or ()))
            return judged(seen, _version(connection, seen), known, shown)
    except Exception as error:  # noqa: BLE001 - a driver's failure is a finding, whatever it is
        said = scrubbed(" ".join(str(error).split()), address) or type(error).__name__
        return Finding("store", "bad", f"{shown} cannot be used: {said}", UNUSABLE)


def _version(connection: "Connection", seen: Seen) -> int:
    if not seen.table:
        return 0
    row = connection.execute("SELECT version FROM wholeturn_schema").fetchone()
    return int(row[0]) if row else 0


def judged(seen: Seen, version: int, known: int, shown: str) -> Finding:
    """The finding. version: of the tables that are there, 0 for none; known: the one that we write."""
    if seen.encoding != "UTF8":
        mend = "Name a database that was made with ENCODING 'UTF8'."
        return Finding("store", "bad", f"{shown} has the encoding {seen.encoding}.", mend)
    if version > known:
        text = f"{shown} was written by a newer version (schema {version}, this one knows {known})."
        return Finding("store", "bad", text, "Update Wholeturn, or name another database.")
    if seen.only_reads:
        mend = "Name the server that is written to, e.g. with target_session_attrs=read-write."
        return Finding("store", "bad", f"{shown} lets nobody write: it is a standby, or set so.", mend)
    if version == known:
        return Finding("store", "ok", f"{shown} lets us in, schema {version}")
    if not seen.may_create:
        place = f"schema {seen.schema}" if seen.schema else "a schema on its search path"
        mend = f"Its owner can say: GRANT CREATE ON SCHEMA {seen.schema or '…'} TO {seen.user};"
        return Finding("store", "bad", f"{shown}: {seen.user} may not make tables in {place}.", mend)
    coming = f"schema {version} will be brought up to {known}" if version else "its tables will be made"
    return Finding("store", "ok", f"{shown} lets us in; {coming} with the first session")


MEMORY = "memory"
MEGABYTE = 1 << 20
FULL, TIGHT = 50 * MEGABYTE, 500 * MEGABYTE
"""Bytes: with less than the first a turn may not be saved; below the second it is time to tidy up."""
CHECKED = 64 * MEGABYTE
"""A larger file is not read whole."""
PATIENCE = 2.0
ELSEWHERE = 'Name another file: `store = "…"` in the settings, or --store.'

Access = Callable[[str, int], bool]


def check_store(read: Read, access: Access = os.access) -> Iterator[Finding]:
    """Where sessions are kept, and whether that works."""
    store = read.view.config.store
    if store == MEMORY:
        mend = "Take `store` out of the settings to keep them."
        yield Finding("store", "note", "Sessions are kept in memory and are lost with the process.", mend)
    elif is_address(store):
        yield check_server(store)
    else:
        yield from _file(Path(store), access)


def _file(path: Path, access: Access) -> Iterator[Finding]:
    folder = next((one for one in path.parents if one.exists()), path.parent)
    if not folder.is_dir() or not access(str(folder), os.W_OK | os.X_OK):
        mend = f"Make {short(str(folder))} writable for you. {ELSEWHERE}"
        yield Finding(
            "store", "bad", f"{short(str(path))} cannot be written: its folder is not writable.", mend
        )
        return
    yield from _room(shutil.disk_usage(folder).free)
    if not path.exists():
        yield Finding("store", "ok", f"{short(str(path))} will be made with the first session")
    elif not access(str(path), os.R_OK | os.W_OK):
        mend = f"Make the file yours again: chmod u+rw. {ELSEWHERE}"
        yield Finding("store", "bad", f"{short(str(path))} cannot be written: no permission.", mend)
    elif _is_repaired(path):
        mend = "Wait a moment and run this again."
        yield Finding("store", "note", f"{short(str(path))} is being repaired or brought up to date.", mend)
    else:
        yield _content(path)


def _room(free: int) -> Iterator[Finding]:
    shown = f"{free / MEGABYTE:,.0f} MB free on its disk"
    if free < FULL:
        yield Finding(
            "disk", "bad", f"{shown}: turns may not be saved.", "Make room; `wholeturn sessions gc` helps."
        )
    elif free < TIGHT:
        yield Finding("disk", "note", f"{shown}.", "Make room; `wholeturn sessions gc` helps.")
    else:
        yield Finding("disk", "ok", shown)


def _is_repaired(path: Path) -> bool:
    """Whether somebody holds the store alone. Takes a shared lock for a moment, of a file that is there."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        with opened(f"{path}.lock") as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _content(path: Path) -> Finding:
    shown = short(str(path))
    try:
        return _judged(path, shown)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            mend = "End the program that holds it, or wait for it."
            return Finding("store", "bad", f"{shown} is locked by another program.", mend)
        return Finding("store", "bad", f"{shown} cannot be read: {error}.", ELSEWHERE)
    except OSError as error:
        return Finding("store", "bad", f"{shown} cannot be read: {error.strerror}.", ELSEWHERE)
    except sqlite3.DatabaseError:
        mend = "Close all editors and start one: the server rebuilds it and keeps the damaged file beside it."
        return Finding("store", "bad", f"{shown} is damaged.", mend)


def _judged(path: Path, shown: str) -> Finding:
    if is_text(path):
        return Finding("store", "bad", f"{shown} is a text, no session store.", ELSEWHERE)
    query = "mode=ro" if wal_has_content(path) else "mode=ro&immutable=1"
    connection = connect(path, PATIENCE, query)
    try:
        version = read_version(connection)
        if is_foreign(connection):
            return Finding("store", "bad", f"{shown} is a database of another program.", ELSEWHERE)
        if version > SCHEMA_VERSION:
            text = (
                f"{shown} was written by a newer version (schema {version}, this one knows {SCHEMA_VERSION})."
            )
            return Finding("store", "bad", text, f"Update Wholeturn. {ELSEWHERE}")
        if path.stat().st_size <= CHECKED and _problem(connection):
            raise sqlite3.DatabaseError
        count = connection.execute("SELECT count(*) FROM sessions").fetchone()[0] if version else 0
        if version == SCHEMA_VERSION and (damaged := _damaged(connection, path.stat().st_size <= CHECKED)):
            mend = (
                "What can be read of them is kept: the server mends them when it lists or loads the session."
            )
            return Finding("store", "bad", f"{shown} holds damaged rows: {damaged}.", mend)
    finally:
        connection.close()
    older = (
        f", schema {version} will be brought up to {SCHEMA_VERSION}" if 0 < version < SCHEMA_VERSION else ""
    )
    return Finding("store", "ok", f"{shown}: {count} {'session' if count == 1 else 'sessions'}{older}")


def _damaged(connection: sqlite3.Connection, whole: bool) -> str:
    """The rows with damaged cells. whole: look at the steps too, not at the sessions' heads alone."""
    from runtime.store.sqlite import mend_cells as mending

    rows = [mending.named_head(row) for row in mending.damaged_heads(connection)]
    if whole:
        rows += [mending.named_entry(row) for row in mending.damaged_entries(connection)]
    told: str = mending.listed(rows)
    return told


def _problem(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
