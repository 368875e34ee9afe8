"""The methods of ACP v2: params made over for the first version's handlers, results made back.

`session/prompt` alone is different: it is answered when the prompt is part of the session, and all else comes
as updates. One that comes while a turn runs is held: its answer comes when its own turn begins, or says that
it was given up.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress

from acp_server.acp.params import parse, parse_prompt
from acp_server.app.app import App
from acp_server.methods.v1 import prompt_and_options, sessions, table
from acp_server.methods.v2.client import V2Client, edition_of
from acp_server.methods.v2.updates import in_v2
from acp_server.wire.dispatch import Answer, Later, failed
from acp_server.wire.errors import GivenUp, WireError
from runtime.session.session import CANCELLED, Session, Ticket
from runtime.values.errors import InvalidParams, ResourceNotFound
from runtime.values.events import UserMessage
from runtime.values.prompt import Prompt, meant, with_goal
from schemas.acp.session import CloseSessionParams
from schemas.acp.v2 import ConfigValue, ResumeSessionParams
from schemas.transcript import PromptStep

Params = Mapping[str, object]
Result = dict[str, object]

_OPTIONAL: Mapping[str, Params] = {"stdio": {"args": [], "env": []}, "http": {"headers": []}}
"""The kinds of MCP server there are here, with what may be left out of them."""


# ---------------------------------------------------------------- login


def login(app: App, params: Params) -> Later:
    """`auth/login`: asks the configured model with its key."""
    edition, later = edition_of(app), table.authenticate(app, params)

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
    later = sessions.load(app, first) if replays else sessions.resume(app, first)

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
    return _made_over(prompt_and_options.set_config_option(app, params), _options_only)


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


METHOD = "session/prompt"


def prompt(app: App, params: Mapping[str, object]) -> Later:
    """A turn. Giving the request up stops it as long as it has no answer."""
    edition = edition_of(app)
    edition.require_login()
    asked = parse_prompt(params)
    if not asked.blocks:
        raise InvalidParams("Invalid params: prompt is empty")
    session = app.session(asked.session_id)
    blocks = tuple(dict(block) for block in asked.blocks)
    text = meant(asked.text, session.conversation.notes.commands)
    ticket = session.submit(with_goal(Prompt(text, blocks)))
    work = PromptWork(session, ticket, edition.client)
    return Later(work.run, cancel=lambda: session.give_up(ticket), bind=work.bind)


class PromptWork:
    """One prompt, from its place in the queue to the end of its turn."""

    def __init__(self, session: Session, ticket: Ticket, client: V2Client) -> None:
        self._session = session
        self._ticket = ticket
        self._client = client
        self._answer: Callable[[object], None] | None = None
        self._begun = False
        self._inserted = False

    def bind(self, answer: Callable[[object], None]) -> None:
        """answer: sends the response, once."""
        self._answer = answer

    async def run(self) -> None:
        """Raises what kept the prompt from becoming part of the session; all later trouble is an update."""
        try:
            stop_reason = await self._session.run(self._ticket, self._begin)
        except Exception as error:
            self._end("error", failed(METHOD, error).error)
            if not self._inserted:
                raise
            return
        except BaseException:
            self._end(CANCELLED)
            raise
        self._end(stop_reason)
        if not self._inserted:
            raise GivenUp("Request cancelled")

    def _begin(self) -> None:
        self._begun = True
        self._session.conversation.notes.on_prompt = self._insert
        self._client.begin(self._session.session_id)

    async def _insert(self, step: PromptStep) -> None:
        assert self._answer is not None  # bound before the work began
        self._inserted = True
        self._answer({"messageId": step.message_id})
        for block in step.blocks:
            await self._client.emit(self._session.session_id, UserMessage(step.message_id, block))

    def _end(self, stop_reason: str, error: WireError | None = None) -> None:
        if self._begun:
            self._session.conversation.notes.on_prompt = None
            self._client.end(self._session.session_id, stop_reason, error)
