"""The methods of ACP v2 but prompts: params made over for the first version's handlers, results made back."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress

from acp_server.app import App
from acp_server.dispatch import Answer, Later
from acp_server.inbound import parse
from acp_server.methods import options, restoring, sessions, setup
from acp_server.v2.edition import edition_of
from acp_server.v2.options import in_v2
from runtime.errors import InvalidParams, ResourceNotFound
from schemas.acp.session import CloseSessionParams
from schemas.acp.v2 import ConfigValue, ResumeSessionParams

Params = Mapping[str, object]
Result = dict[str, object]

_OPTIONAL: Mapping[str, Params] = {"stdio": {"args": [], "env": []}, "http": {"headers": []}}
"""The kinds of MCP server there are here, with what may be left out of them."""


# ---------------------------------------------------------------- login


def login(app: App, params: Params) -> Later:
    """`auth/login`: asks the configured model with its key."""
    edition, later = edition_of(app), setup.authenticate(app, params)

    def logged_in(result: Result) -> Result:
        edition.logged_out = False
        return result

    return _made_over(later, logged_in)


def logout(app: App, params: Params) -> Answer:
    """`auth/logout`: what runs is cancelled, and until the next login no session is opened or used.

    The key stays where it is: it is the user's, not this client's.
    """
    edition_of(app).logged_out = True
    for session in app.sessions.values():
        session.cancel()
    return Answer({})


# ---------------------------------------------------------------- sessions


def new(app: App, params: Params) -> Later:
    """`session/new`."""
    edition_of(app).require_login()
    return _made_over(sessions.new(app, _with_servers(params)), _options_only)


def resume(app: App, params: Params) -> Later:
    """`session/resume`: what was said, if it is asked for from the start; then where the session stands."""
    edition = edition_of(app)
    edition.require_login()
    asked, first = parse(ResumeSessionParams, params), _with_servers(params)
    replays = asked.replay_from is not None
    later = sessions.load(app, first) if replays else restoring.resume(app, first)

    async def run() -> Result:
        with edition.standings[asked.session_id].replay() if replays else nullcontext():
            result = await later.run()
        idle = app.session(asked.session_id).idle.is_set()
        edition.client.snapshot(asked.session_id, running=not idle)
        return _options_only(_object(result))

    return later._replace(run=run)


def list_(app: App, params: Params) -> Later:
    """`session/list`."""
    edition_of(app).require_login()
    return sessions.list_(app, params)


def close(app: App, params: Params) -> Later:
    """`session/close`: one that is not open is closed already."""
    edition, session_id = edition_of(app), parse(CloseSessionParams, params).session_id

    async def run() -> Result:
        with suppress(ResourceNotFound):
            await app.close_session(session_id)
        edition.standings.pop(session_id, None)
        return {}

    return Later(run)


def set_config_option(app: App, params: Params) -> Later:
    """`session/set_config_option`: every option here is a choice by id."""
    parse(ConfigValue, params)
    return _made_over(options.set_config_option(app, params), _options_only)


# ---------------------------------------------------------------- making over


def _made_over(later: Later, change: Callable[[Result], Result]) -> Later:
    async def run() -> Result:
        return change(_object(await later.run()))

    return later._replace(run=run)


def _object(result: object) -> Result:
    assert isinstance(result, dict)
    return result


def _options_only(result: Result) -> Result:
    """The answer with v2's options, and without the modes that are among them."""
    others = {key: value for key, value in result.items() if key not in ("modes", "configOptions")}
    return {**others, "configOptions": in_v2(result["configOptions"])}


def _with_servers(params: Params) -> Params:
    """The params with MCP servers as the first version names them. Raises InvalidParams for another kind."""
    servers = params.get("mcpServers")
    if servers is None:
        return {**params, "mcpServers": []}
    if not isinstance(servers, list):
        return params
    return {**params, "mcpServers": [_server(at, server) for at, server in enumerate(servers)]}


def _server(at: int, server: object) -> object:
    if not isinstance(server, dict):
        return server
    kind = server.get("type")
    if not isinstance(kind, str) or kind not in _OPTIONAL:
        raise InvalidParams(f"Invalid params: mcpServers[{at}].type must be one of {', '.join(_OPTIONAL)}")
    given = {key: value for key, value in server.items() if not (key == "type" and kind == "stdio")}
    return {**_OPTIONAL[kind], **given}
