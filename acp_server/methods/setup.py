"""`initialize` and `authenticate`: what is on offer, and whether the configured provider has its key."""

from collections.abc import Mapping
from pathlib import Path

from acp_server.app import App
from acp_server.config.paths import here
from acp_server.dispatch import Answer, Later
from acp_server.hello import initialize_result
from acp_server.inbound import parse
from runtime.errors import AuthRequired, InvalidParams
from schemas.acp.auth import AuthenticateParams

METHOD_ID = "config"


def initialize(app: App, params: Mapping[str, object]) -> Answer:
    """The same answer as the one that is given before the heavy imports."""
    return Answer(initialize_result(params))


def authenticate(app: App, params: Mapping[str, object]) -> Later:
    """Checks that the configured provider could be used: AuthRequired says what is missing."""
    if parse(AuthenticateParams, params).method_id != METHOD_ID:
        raise InvalidParams("Invalid params: methodId is not one of authMethods")

    async def run() -> dict[str, object]:
        await check_provider(app)
        return {}

    return Later(run)


async def check_provider(app: App) -> None:
    """Whether a prompt could be sent. Raises AuthRequired saying what is missing."""
    settings = app.config(Path(here())).agent.provider
    if settings is None:
        raise AuthRequired("No model is configured: `wholeturn config path` names the file to write.")
    if settings.api_key_env and not app.env.get(settings.api_key_env):
        raise AuthRequired(f"Set the environment variable {settings.api_key_env} to your API key.")
    await app.provider(settings)
