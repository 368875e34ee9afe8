"""The store of the settings, for commands that look at sessions without a server. Knows no command."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from acp_server.cli.output import harmless
from acp_server.config.load import for_session, load_user_config
from acp_server.config.options import Options
from acp_server.config.paths import here
from runtime.errors import ResourceNotFound
from runtime.store.opening import open_store
from runtime.stored import SessionRecord, Store

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
