"""The methods that make, find, load and end sessions. Each decides at once; what may block is work."""

from collections.abc import Mapping
from pathlib import Path

from acp_server.app import App
from acp_server.dispatch import Later
from acp_server.inbound import parse
from acp_server.local import COMMANDS
from runtime.errors import InvalidParams
from runtime.events import CommandsAvailable, Noticed
from runtime.loading import replay
from runtime.ports import (
    SessionRecord,
)
from runtime.session import Session
from schemas.acp.session import CloseSessionParams, ListSessionsParams, LoadSessionParams, NewSessionParams

PAGE = 50
"""Sessions in one answer of `session/list`."""


def new(app: App, params: Mapping[str, object]) -> Later:
    """`session/new`: an empty session that is already stored."""
    asked = parse(NewSessionParams, params)
    refuse_directories(asked.additional_directories)
    made: list[Session] = []

    async def run() -> dict[str, object]:
        made.append(await app.new_session(Path(asked.cwd)))
        tell_unused(made[0], len(asked.mcp_servers))
        return {"sessionId": made[0].session_id}

    async def then() -> None:
        await announce(made[0])
        await app.warm(made[0])

    return Later(run, then)


def load(app: App, params: Mapping[str, object]) -> Later:
    """`session/load`: a trim that became due, then the whole visible transcript, then the answer."""
    asked = parse(LoadSessionParams, params)
    refuse_directories(asked.additional_directories)
    loaded: list[Session] = []

    async def run() -> dict[str, object]:
        session = await app.load_session(asked.session_id, Path(asked.cwd))
        loaded.append(session)
        tell_unused(session, len(asked.mcp_servers))
        await replay(session.conversation)
        return {}

    async def then() -> None:
        await loaded[0].conversation.keeper.show_usage()
        await announce(loaded[0])
        await app.warm(loaded[0])

    return Later(run, then)


def list_(app: App, params: Mapping[str, object]) -> Later:
    """`session/list`: newest change first."""
    asked = parse(ListSessionsParams, params)

    async def run() -> dict[str, object]:
        store = app.store()
        page = await store.list_sessions(cwd=asked.cwd, cursor=asked.cursor, limit=PAGE)
        result: dict[str, object] = {"sessions": [listed(record) for record in page.sessions]}
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor
        return result

    return Later(run)


def close(app: App, params: Mapping[str, object]) -> Later:
    """`session/close`: what runs is cancelled and answers so; what is stored stays."""
    session_id = parse(CloseSessionParams, params).session_id
    app.session(session_id)

    async def run() -> dict[str, object]:
        await app.close_session(session_id)
        return {}

    return Later(run)


def listed(record: SessionRecord) -> dict[str, object]:
    """A session as `session/list` shows it."""
    shown: dict[str, object] = {
        "sessionId": record.session_id,
        "cwd": record.cwd,
        "updatedAt": record.updated_at,
    }
    if record.title is not None:
        shown["title"] = record.title
    return shown


async def announce(session: Session) -> None:
    """The commands on offer, once the client knows the session."""
    await session.conversation.emit(CommandsAvailable(COMMANDS))


def refuse_directories(directories: tuple[str, ...]) -> None:
    """More folders are not on offer: taking the field in silence would promise what is not done."""
    if directories:
        raise InvalidParams("Invalid params: additionalDirectories is not supported")


def tell_unused(session: Session, servers: int) -> None:
    """MCP servers are not connected by this version: the person is told, with the first turn."""
    if servers:
        text = f"This version connects to no MCP servers; {servers} of the client's are not used."
        session.conversation.pending.append(Noticed("warning", "MCP servers", text))
