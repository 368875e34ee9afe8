"""The methods that make, find, load and end sessions. Each decides at once; what may block is work."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import trio

from acp_server.app import App
from acp_server.dispatch import Later
from acp_server.inbound import parse
from runtime.errors import InvalidParams, ResourceNotFound
from runtime.providers import catalog
from runtime.stored import SessionRecord
from schemas.acp.session import CloseSessionParams, ListSessionsParams, LoadSessionParams, NewSessionParams

PAGE = 50
"""Sessions in one answer of `session/list`."""


def new(app: App, params: Mapping[str, object]) -> Later:
    """`session/new`: an empty session that is already stored; the rest is made ready behind the answer."""
    asked = parse(NewSessionParams, params)
    refuse_directories(asked.additional_directories)
    cwd = folder_here(asked.cwd)
    made: list[str] = []

    async def run() -> dict[str, object]:
        made.append(await app.new_session(cwd))
        return {"sessionId": made[0]}

    async def then() -> None:
        # In a thread, so that what the client sends meanwhile is heard.
        await trio.to_thread.run_sync(import_module, "acp_server.live")
        await make_ready(app, made[0], len(asked.mcp_servers))

    return Later(run, then)


def load(app: App, params: Mapping[str, object]) -> Later:
    """`session/load`: a trim that became due, then the whole visible transcript, then the answer."""
    asked = parse(LoadSessionParams, params)
    refuse_directories(asked.additional_directories)
    cwd = folder_here(asked.cwd)

    async def run() -> dict[str, object]:
        session = await app.load_session(asked.session_id, cwd)
        await app.live.replay(session.conversation)
        return {}

    async def then() -> None:
        session = app.sessions.get(asked.session_id)
        if session is not None:
            await session.conversation.keeper.show_usage()
        await make_ready(app, asked.session_id, len(asked.mcp_servers))

    return Later(run, then)


async def make_ready(app: App, session_id: str, servers: int) -> None:
    """What follows the answer: the commands on offer, and imports that the first prompt would wait for.

    Nothing when the client has closed the session by then.
    """
    try:
        session = app.session(session_id)
    except ResourceNotFound:
        return
    if servers:
        text = f"This version connects to no MCP servers; {servers} of the client's are not used."
        app.live.tell(session.conversation, "MCP servers", text)
    await app.live.announce(session.conversation)
    kind = session.conversation.setup.kind
    if kind:
        await trio.to_thread.run_sync(catalog.warm, kind)


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


def folder_here(cwd: str) -> Path:
    """The session's folder. Raises InvalidParams for one of another system: it would name a place in ours."""
    folder = Path(cwd)
    if not folder.is_absolute():
        raise InvalidParams("Invalid params: cwd is not an absolute path on this system")
    return folder


def refuse_directories(directories: tuple[str, ...]) -> None:
    """More folders are not on offer: taking the field in silence would promise what is not done."""
    if directories:
        raise InvalidParams("Invalid params: additionalDirectories is not supported")
