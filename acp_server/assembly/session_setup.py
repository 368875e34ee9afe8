"""From settings to what a session runs with: model, tools, trimmer, permission, system prompt.

Knows the catalogs of tools and providers, no protocol.
"""

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from acp_server.assembly import session_options as offers
from acp_server.config.settings import AgentConfig, ModelConfig, PermissionSettings, SessionConfig, ToolConfig
from runtime.conversation.retry import SightlessProvider
from runtime.history.rows.token_counter import SightlessCounter, TokenCounter, token_counter
from runtime.permission.modes import Permission
from runtime.permission.rules import parse_allow, parse_rule
from runtime.ports import ContextTrimmer, Provider, Tool
from runtime.providers.settings import ProviderSettings
from runtime.setup.redaction import Redaction
from runtime.setup.session_setup import Alternative, Setup, Summariser
from runtime.tools import catalog
from runtime.tools.arguments import ToolSettings
from runtime.values.errors import NoModelConfigured
from runtime.values.profiles import Choice, Offer, Route

SYSTEM_PROMPT = """\
You are Wholeturn, a coding agent in the user's editor. You work with tools on the files of its folder.
Look before you act: search and read, and state nothing about a file that you have not read. Do what was \
asked, no more, in the style of what is there. After a change run what proves it (tests, build) and mend \
what fails; if you cannot, say so. Answer briefly, with paths and line numbers.
If your view begins with a line that earlier turns were omitted, you can't see those turns: do not guess \
what was in them; look again or ask."""
"""The product's own system prompt; an agent's `system_prompt` replaces it."""


@cache
def tools(names: tuple[str, ...], made_with: ToolConfig) -> dict[str, Tool]:
    """These tools, by name. They keep no state of a session."""
    settings = ToolSettings(frozenset(made_with.key_variables), made_with.private_addresses)
    return {tool.spec.name: tool for tool in catalog.load_all(names, settings)}


ProviderOf = Callable[[ProviderSettings], Awaitable[Provider]]
"""Makes or finds the provider that settings describe."""


def make_setup(config: SessionConfig, provider: ProviderOf, without: Collection[str] = frozenset()) -> Setup:
    """What a session with these settings runs with. without: tools that its client has no use for."""
    agent = config.agent
    settings = agent.provider
    redaction = Redaction(tuple(map(re.compile, config.redact)))
    names = tuple(name for name in agent.profile.tools if name not in without)
    return Setup(
        profile=agent.profile,
        route=agent.route or Route("", ""),
        tools=redaction.tools(tools(names, config.tools)),
        system=(agent.system_prompt or SYSTEM_PROMPT,),
        provider=_no_model if settings is None else _maker(settings, provider, agent.images),
        kind="" if settings is None else settings.kind,
        prompt_tools=agent.prompt_tools,
        counter=_counter(agent),
        images=agent.images,
        alternatives=tuple(_alternative(model, provider) for model in agent.fallback),
        prices={model.route.id: model.price for model in config.models if model.price is not None},
        permission=_permission(config.permissions),
        redaction=redaction,
        trimmer=_trimmer(config, provider),
        summarise=_summariser(config, agent.profile.summary_model, provider),
        agent=agent.name,
    )


def _summariser(config: SessionConfig, named: str, provider: ProviderOf) -> Summariser | None:
    """The model for summaries: the one that is named, else the agent's own; None when there is none."""
    model = dict(config.helpers).get(named)
    if model is not None:
        return Summariser(_maker(model.provider, provider, model.images), model.route)
    agent = config.agent
    if agent.provider is None or agent.route is None:
        return None
    return Summariser(_maker(agent.provider, provider, agent.images), agent.route)


def _trimmer(config: SessionConfig, provider: ProviderOf) -> ContextTrimmer | None:
    profile = config.agent.profile
    context = profile.loop_context
    if context is None:
        return None
    # Few bound their turns from inside, and every session waits for this module.
    from runtime.trimming.catalog import trimmer_of

    return trimmer_of(context, profile.trim_slack_ratio, _summariser(config, context.model, provider))


def _permission(settings: PermissionSettings) -> Permission:
    return Permission(
        settings.mode,
        tuple(map(parse_allow, settings.allow)),
        tuple(map(parse_rule, settings.ask)),
        tuple(map(parse_rule, settings.deny)),
        Path(settings.answers) if settings.answers else None,
    )


def _alternative(model: ModelConfig, provider: ProviderOf) -> Alternative:
    return Alternative(
        route=model.route,
        provider=_maker(model.provider, provider, model.images),
        kind=model.provider.kind,
        prompt_tools=model.prompt_tools,
        counter=_counter(model),
        images=model.images,
        price=model.price,
    )


def _counter(model: AgentConfig | ModelConfig) -> TokenCounter:
    counter = token_counter(model.token_counter)
    return counter if model.images else SightlessCounter(counter)


async def _no_model() -> Provider:
    raise NoModelConfigured("No model is configured.")


def _maker(
    settings: ProviderSettings, provider: ProviderOf, images: bool
) -> Callable[[], Awaitable[Provider]]:
    """Gives the provider; around one that cannot see, always the same wrapper, which keeps what it made."""
    wrappers: dict[int, SightlessProvider] = {}

    async def made() -> Provider:
        found = await provider(settings)
        return found if images else wrappers.setdefault(id(found), SightlessProvider(found))

    return made


@dataclass(frozen=True, slots=True)
class SettingsCatalog:
    """What a session may be set to, out of the settings that it was opened with (`switch_model.Catalog`)."""

    config: SessionConfig
    provider: ProviderOf
    without: Collection[str] = frozenset()

    def offers(self, choice: Choice) -> tuple[Offer, ...]:
        return offers.offers(self.config, choice)

    def chosen(self, choice: Choice, offer_id: str, value: str) -> Choice:
        return offers.chosen(self.config, choice, offer_id, value)

    def setup(self, choice: Choice) -> Setup:
        return make_setup(offers.with_choice(self.config, choice), self.provider, self.without)
