"""The methods that make, find, load, resume, copy, close and delete sessions.

Each decides at once; what may block is work. Knows the app, no transport.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import trio

from acp_server.acp.capabilities import unstable_wanted
from acp_server.acp.params import parse
from acp_server.app.app import App, not_found
from acp_server.methods.v1.prompt_and_options import options_of, options_of_new
from acp_server.wire.dispatch import Later
from acp_server.wire.errors import NotOffered
from runtime.providers import catalog
from runtime.values.errors import InvalidParams, ResourceNotFound
from runtime.values.stored import SessionRecord
from schemas.acp.session import (
    CloseSessionParams,
    DeleteSessionParams,
    ForkSessionParams,
    ListSessionsParams,
    LoadSessionParams,
    NewSessionParams,
    ResumeSessionParams,
)

PAGE = 50
"""Sessions in one answer of `session/list`."""


def new(app: App, params: Mapping[str, object]) -> Later:
    """`session/new`: an empty session that is already stored; the rest is made ready behind the answer."""
    asked = parse(NewSessionParams, params)
    cwd, directories = folder_here(asked.cwd), folders_here(asked.additional_directories)
    made: list[str] = []

    async def run() -> dict[str, object]:
        made.append(await app.new_session(cwd, directories, asked.mcp_servers))
        return {"sessionId": made[0], **options_of_new(app, made[0])}

    async def then() -> None:
        # In a thread, so that what the client sends meanwhile is heard.
        await trio.to_thread.run_sync(_load_runtime)
        await make_ready(app, made[0])

    return Later(run, then)


def _load_runtime() -> None:
    import acp_server.app.open_sessions  # noqa: F401


def load(app: App, params: Mapping[str, object]) -> Later:
    """`session/load`: a trim that became due, then the whole visible transcript, then the answer."""
    asked = parse(LoadSessionParams, params)
    cwd, directories = folder_here(asked.cwd), folders_here(asked.additional_directories)

    async def run() -> dict[str, object]:
        session = await app.load_session(asked.session_id, cwd, directories, asked.mcp_servers)
        await app.live.replay(session.conversation)
        return options_of(app, asked.session_id)

    async def then() -> None:
        await make_ready(app, asked.session_id, meter=True)

    return Later(run, then)


async def make_ready(app: App, session_id: str, *, meter: bool = False) -> None:
    """What follows the answer: the commands on offer, MCP servers, and imports that the first prompt needs.

    meter: also how full the context is. Nothing when the client has closed the session by then.
    """
    try:
        session = app.session(session_id)
    except ResourceNotFound:
        return
    if meter:
        await session.conversation.keeper.show_usage()
    if session.servers is not None:
        session.servers.start()
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


def delete(app: App, params: Mapping[str, object]) -> Later:
    """`session/delete`: ended, if it is open, and gone for good. One that is not there is deleted already."""
    session_id = parse(DeleteSessionParams, params).session_id

    async def run() -> dict[str, object]:
        store = app.store()
        with suppress(ResourceNotFound):
            store = app.session(session_id).conversation.store
            await app.close_session(session_id)
        await store.delete_session(session_id)
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
    if directories := directories_of(record.state):
        shown["additionalDirectories"] = directories
    return shown


def directories_of(state: str) -> list[str]:
    """The folders that a session's tools may use beside its own, from its stored state."""
    if '"directories"' not in state:
        return []
    try:
        found = json.loads(state).get("directories")
    except (ValueError, AttributeError):
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def folder_here(name: str, what: str = "cwd") -> Path:
    """A folder as a client names it. Raises InvalidParams for one of another system: it would name ours."""
    folder = Path(name)
    if not folder.is_absolute():
        raise InvalidParams(f"Invalid params: {what} is not an absolute path on this system")
    return folder


def folders_here(directories: Sequence[str]) -> tuple[Path, ...]:
    """More folders for the session's tools, without doubles. Raises InvalidParams."""
    return tuple(folder_here(name, "additionalDirectories") for name in dict.fromkeys(directories))


def resume(app: App, params: Mapping[str, object]) -> Later:
    """`session/resume`: as a load, but nothing is shown; a trim that is due is told with the next turn."""
    asked = parse(ResumeSessionParams, params)
    cwd, directories = folder_here(asked.cwd), folders_here(asked.additional_directories)

    async def run() -> dict[str, object]:
        await app.load_session(asked.session_id, cwd, directories, asked.mcp_servers, quietly=True)
        return options_of(app, asked.session_id)

    async def then() -> None:
        await make_ready(app, asked.session_id, meter=True)

    return Later(run, then)


def fork(app: App, params: Mapping[str, object]) -> Later:
    """`session/fork` (unstable): another session with all that this one holds. Nothing of it is replayed."""
    if not unstable_wanted(app.greeting):
        raise NotOffered("Method not found")
    asked = parse(ForkSessionParams, params)
    cwd, directories = folder_here(asked.cwd), folders_here(asked.additional_directories)
    made: list[str] = []

    async def run() -> dict[str, object]:
        store = app.store(app.config(cwd))
        source = await store.session(asked.session_id)
        if source is None:
            raise not_found(asked.session_id)
        if source.cwd != str(cwd):
            raise InvalidParams("Invalid params: cwd is not the folder that this session belongs to")
        made.append(await app.live.copy_session(store, source))
        await app.load_session(made[0], cwd, directories, asked.mcp_servers, quietly=True)
        return {"sessionId": made[0], **options_of(app, made[0])}

    async def then() -> None:
        await make_ready(app, made[0], meter=True)

    return Later(run, then)
