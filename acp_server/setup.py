"""From settings to what a session runs with. Knows the catalogs of tools and providers, no protocol."""

from collections.abc import Awaitable, Callable
from functools import cache

from acp_server.config.settings import SessionConfig
from runtime.errors import NoModelConfigured
from runtime.history.counter import token_counter
from runtime.ports import Provider, Tool
from runtime.profiles import Route
from runtime.providers.settings import ProviderSettings
from runtime.setup import Setup
from runtime.tools import catalog

SYSTEM_PROMPT = """\
You are Wholeturn, a coding agent inside the user's editor. You work on the files of one folder.
Use the tools to look before you answer: read files, list directories, search text. Say what you found, with \
paths and line numbers. Never state something about a file that you have not read in what you can see now.
Your view of this conversation is bounded. Where it begins with a line that earlier turns were omitted, you \
can't see those turns: do not guess what was in them; look again or ask."""
"""The product's own system prompt; an agent's `system_prompt` replaces it."""


@cache
def tools() -> dict[str, Tool]:
    """The tools of every session, by name. They keep no state of a session."""
    return {tool.spec.name: tool for tool in catalog.load_all()}


def make_setup(config: SessionConfig, provider: Callable[[ProviderSettings], Awaitable[Provider]]) -> Setup:
    """What a session with these settings runs with."""
    agent = config.agent
    settings = agent.provider

    async def made() -> Provider:
        if settings is None:
            raise NoModelConfigured("No model is configured.")
        return await provider(settings)

    return Setup(
        profile=agent.profile,
        route=agent.route or Route("", ""),
        tools=tools(),
        system=(agent.system_prompt or SYSTEM_PROMPT,),
        provider=made,
        kind="" if settings is None else settings.kind,
        prompt_tools=agent.prompt_tools,
        counter=token_counter(agent.token_counter),
    )
