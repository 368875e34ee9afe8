"""Sessions for commands without a server: the store of the settings, and which session a command means."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio

from acp_server.cli.output import harmless
from acp_server.config.load import for_session, load_user_config
from acp_server.config.paths import here
from acp_server.config.settings import Options
from runtime.store.opening import open_store
from runtime.values.errors import ResourceNotFound
from runtime.values.stored import SessionRecord, Store

LONGEST_TITLE = 200


@asynccontextmanager
async def opened(options: Options) -> AsyncIterator[Store]:
    """The store, closed behind. Its troubles go to stderr. Raises ConfigError."""
    config = for_session(load_user_config(options, os.environ), Path(here()))
    store = open_store(config.store, on_trouble=lambda text: print(f"wholeturn: {text}", file=sys.stderr))
    try:
        yield store
    finally:
        with trio.CancelScope(shield=True):
            await store.aclose()


async def found(store: Store, session_id: str) -> SessionRecord:
    """The session's head. Raises ResourceNotFound."""
    record = await store.session(session_id)
    if record is None:
        raise ResourceNotFound(f"There is no session {session_id[:80]!r}.")
    return record


def warn_unreadable(key: str, what: str) -> None:
    """Say on stderr what became of a stored step that is damaged."""
    text = harmless(f"wholeturn: the stored step {short(key)} cannot be read; it is {what}")
    print(text, file=sys.stderr)


def line_of(record: SessionRecord) -> str:
    """A session's head for people."""
    when = record.updated_at[:16].replace("T", " ")
    return one_line(f"{record.session_id}  {when}  {short(record.title or '-')}  ({record.cwd})")


def short(title: str) -> str:
    """A title that came from elsewhere may be of any length."""
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.splitlines())


if TYPE_CHECKING:
    from acp_server.app.app import App
    from runtime.session.session import Session

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
