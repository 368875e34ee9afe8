"""The ways back into a stored session beside `session/load`: resume, and a copy of it to go on with."""

from collections.abc import Mapping

from acp_server.app import App, not_found
from acp_server.dispatch import Later
from acp_server.errors import NotOffered
from acp_server.hello import unstable_wanted
from acp_server.inbound import parse
from acp_server.methods.options import options_of
from acp_server.methods.sessions import folder_here, folders_here, make_ready
from runtime.errors import InvalidParams
from schemas.acp.session import ForkSessionParams, ResumeSessionParams


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
