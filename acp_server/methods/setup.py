"""`initialize` and `authenticate`: what is on offer, and whether the configured model takes its key."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from acp_server.app import App
from acp_server.config.keystore import KeyedEnviron
from acp_server.config.paths import here
from acp_server.dispatch import Answer, Later
from acp_server.hello import METHOD_ID, PROTOCOL_VERSION, initialize_result
from acp_server.inbound import parse
from runtime.errors import AuthRequired, ConfigError, InvalidParams
from schemas.acp.auth import AuthenticateParams


def initialize(app: App, params: Mapping[str, object]) -> Answer:
    """The same answer as the one that is given before the heavy imports; version 2 where it is asked for and
    on.
    """
    result = initialize_result(params)
    asked = params["protocolVersion"]
    if isinstance(asked, int) and asked > PROTOCOL_VERSION and offers_v2(app):
        second: Answer = import_module("acp_server.v2.greeting").initialize(app, params)
        return second
    if app.edition is None:
        return Answer(result)
    app.edition = None
    return Answer(result, methods=import_module("acp_server.methods.table").METHODS)


def offers_v2(app: App) -> bool:
    """Whether the settings allow the draft of ACP v2. Settings that cannot be read allow nothing."""
    try:
        return app.config(Path(here())).acp.v2
    except ConfigError:
        return False


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
        await import_module("acp_server.trying").try_once(provider, route.model)
