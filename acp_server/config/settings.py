"""Settings as the server uses them: frozen values with nothing left to look up. Knows no source of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from runtime.profiles import Profile, Route
    from runtime.providers.settings import ProviderSettings

TrimUpdates = Literal["always", "negotiated", "off"]
VisibleNotice = Literal["auto", "always", "never"]


class AcpSettings(NamedTuple):
    """How a client is told of trims: the `history_trimmed` update, and a line the person can see."""

    history_trimmed: TrimUpdates = "always"
    visible_trim_notice: VisibleNotice = "auto"


class AgentConfig(NamedTuple):
    """An agent, complete. provider and route are None together: nothing is configured to answer.

    route.model is the model to ask for, '' when none is named; its window is the configured one only if
    the provider's section speaks of that model. system_prompt: None for the product's own.
    prompt_tools: the model writes its tool calls into its text.
    """

    name: str
    provider: ProviderSettings | None
    route: Route | None
    profile: Profile
    system_prompt: str | None = None
    prompt_tools: bool = False
    token_counter: str = "heuristic"


class SessionConfig(NamedTuple):
    """What a session runs with. store: an absolute path or `memory`. warnings: whole sentences to log."""

    agent: AgentConfig
    acp: AcpSettings
    store: str
    warnings: tuple[str, ...] = ()
