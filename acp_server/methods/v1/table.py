"""ACP v1: `authenticate`, and the table of methods beside `initialize`. Every other request is -32601."""

from collections.abc import Mapping
from pathlib import Path

from acp_server.acp.capabilities import METHOD_ID
from acp_server.acp.params import parse
from acp_server.app.app import App
from acp_server.config.paths import here
from acp_server.config.secrets import KeyedEnviron
from acp_server.methods.v1 import prompt_and_options, sessions
from acp_server.wire.dispatch import Handler, Later
from runtime.values.errors import AuthRequired, InvalidParams
from schemas.acp.initialize import AuthenticateParams


def authenticate(app: App, params: Mapping[str, object]) -> Later:
    """Asks the configured model with its key: AuthRequired says what is missing or wrong.

    A method for the terminal is the client's own to carry out, so its id is refused like any other.
    """
    if parse(AuthenticateParams, params).method_id != METHOD_ID:
        raise InvalidParams(f"Invalid params: methodId may be {METHOD_ID}")

    async def run() -> dict[str, object]:
        await check_provider(app)
        return {}

    return Later(run)


async def check_provider(app: App) -> None:
    """Whether a prompt could be sent. A key is only known to be good when the model has answered with it.

    Raises AuthRequired saying what is missing, and what else keeps the model from answering.
    """
    agent = app.config(Path(here())).agent
    settings, route = agent.provider, agent.route
    if settings is None or route is None:
        raise AuthRequired("No model is configured: `wholeturn setup` asks for one in a terminal.")
    variable = settings.api_key_env
    if variable and not KeyedEnviron(app.env).get(variable):
        raise AuthRequired(f"There is no key: set {variable}, or run `wholeturn setup` in a terminal.")
    provider = await app.provider(settings)
    if variable:
        # Loaded here: what a request is made of is not needed before.
        from acp_server.assembly.providers_and_stores import try_once

        await try_once(provider, route.model)


METHODS: Mapping[str, Handler[App]] = {
    "authenticate": authenticate,
    "session/new": sessions.new,
    "session/load": sessions.load,
    "session/resume": sessions.resume,
    "session/fork": sessions.fork,
    "session/list": sessions.list_,
    "session/close": sessions.close,
    "session/delete": sessions.delete,
    "session/set_config_option": prompt_and_options.set_config_option,
    "session/set_mode": prompt_and_options.set_mode,
    "session/prompt": prompt_and_options.prompt,
    "session/cancel": prompt_and_options.cancel,
}
