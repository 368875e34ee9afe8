"""The session that a one-shot command works in: a new one, a named one, or the newest of a folder."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from acp_server.cli.stored import found
from acp_server.config.paths import here
from runtime.errors import ResourceNotFound
from runtime.stored import SessionRecord, Store

if TYPE_CHECKING:
    from acp_server.app import App
    from runtime.session import Session

LOOKED_AT = 50
"""Sessions of a folder among which the newest that was used is looked for: editors leave empty ones."""


class Wanted(NamedTuple):
    """cwd: the folder, None for the session's own. session_id: None for a new one. newest: of the folder."""

    cwd: Path | None
    session_id: str | None = None
    newest: bool = False


async def session_of(app: "App", wanted: Wanted) -> "Session":
    """Open it. Raises ResourceNotFound, InvalidParams when the folder is not that of the session."""
    cwd = wanted.cwd or Path(here())
    if wanted.session_id is None and not wanted.newest:
        return app.session(await app.new_session(cwd))
    store = app.store(app.config(cwd))
    if wanted.session_id is None:
        record = await newest_of(store, cwd)
    else:
        record = await found(store, wanted.session_id)
    check_folder(record)
    # Nothing is replayed here: a trim that is due is made, and told, by the turn.
    return await app.load_session(record.session_id, wanted.cwd or Path(record.cwd), quietly=True)


def check_folder(record: SessionRecord) -> None:
    """Raises ResourceNotFound when the session's folder is gone."""
    if not Path(record.cwd).is_dir():
        raise ResourceNotFound(f"{record.cwd}: the session's folder is not there any more.")


async def newest_of(store: Store, cwd: Path) -> SessionRecord:
    """The session of a folder that was used last. Raises ResourceNotFound."""
    page = await store.list_sessions(cwd=str(cwd), cursor=None, limit=LOOKED_AT)
    used = [record for record in page.sessions if record.title is not None]
    if not used:
        raise ResourceNotFound(f"There is no session of {cwd} to continue.")
    return used[0]
