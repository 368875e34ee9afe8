"""Checks of a session store on a PostgreSQL server: logs in, looks, changes nothing. No password is shown."""

from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from acp_server.doctor.finding import Finding
from acp_server.extras import installing
from runtime.store.address import masked, scrubbed

if TYPE_CHECKING:
    from runtime.store.postgres_schema import Connection

PATIENCE = 2
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
        driver = import_module("psycopg")
        # Beside the driver, which it needs.
        known = import_module("runtime.store.postgres_schema").SCHEMA_VERSION
    except ImportError:
        mend = f"Install it: {installing('postgres')}"
        return Finding("store", "bad", f"The driver for {shown} is not installed.", mend)
    try:
        with closing(driver.connect(address, connect_timeout=PATIENCE)) as connection:
            seen = Seen(*connection.execute(_LOOK).fetchone())
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
