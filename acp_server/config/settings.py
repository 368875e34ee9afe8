"""Settings as the server uses them: frozen values with nothing left to look up. Knows no source of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from runtime.mcp.settings import McpSettings
    from runtime.permission.modes import ModeId
    from runtime.prices import Price
    from runtime.profiles import Profile, Route
    from runtime.providers.settings import ProviderSettings

TrimUpdates = Literal["always", "negotiated", "off"]
VisibleNotice = Literal["auto", "always", "never"]


class AcpSettings(NamedTuple):
    """How a client is told of trims: the `history_trimmed` update, and a line the person can see.

    v2: the draft of ACP v2 is spoken with a client that asks for it.
    """

    history_trimmed: TrimUpdates = "always"
    visible_trim_notice: VisibleNotice = "auto"
    v2: bool = False


class ToolConfig(NamedTuple):
    """What tools are made with. private_addresses: pages of this machine and its network may be fetched.

    key_variables: those that keys of ours stand in.
    """

    private_addresses: bool = False
    key_variables: tuple[str, ...] = ()


class ModelConfig(NamedTuple):
    """A model of a provider, with all that is known of it. `provider` speaks of this model alone.

    route.model is the model to ask for, '' when none is named; its window is the configured one only if the
    settings speak of that model. prompt_tools: the model writes its tool calls into its text. images: False
    when it cannot see. price: None when it is not configured.
    """

    provider: ProviderSettings
    route: Route
    prompt_tools: bool = False
    token_counter: str = "heuristic"
    images: bool = True
    price: Price | None = None


class AgentConfig(NamedTuple):
    """An agent, complete. provider and route are None together: nothing is configured to answer.

    The fields that it shares with ModelConfig are those of its model. system_prompt: None for the product's
    own. fallback: asked in this order when the model fails for good.
    """

    name: str
    provider: ProviderSettings | None
    route: Route | None
    profile: Profile
    system_prompt: str | None = None
    prompt_tools: bool = False
    token_counter: str = "heuristic"
    images: bool = True
    fallback: tuple[ModelConfig, ...] = ()

    def using(self, model: ModelConfig) -> AgentConfig:
        """The agent with another model; that one is then none of its alternatives."""
        return self._replace(
            provider=model.provider,
            route=model.route,
            prompt_tools=model.prompt_tools,
            token_counter=model.token_counter,
            images=model.images,
            fallback=tuple(other for other in self.fallback if other.route.id != model.route.id),
        )


class PermissionSettings(NamedTuple):
    """The mode that a session begins in, and the rules as they are written.

    answers: the folder where answers that hold for good are kept, '' for nowhere.
    """

    mode: ModeId = "ask"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    answers: str = ""


class GatewaySettings(NamedTuple):
    """How `wholeturn gateway` listens, and what it takes from those who come; see `schemas.config`.

    tls_cert, tls_key: absolute paths, '' for none.
    """

    host: str = "127.0.0.1"
    port: int = 8017
    tls_cert: str = ""
    tls_key: str = ""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_connections: int = 512
    max_message_bytes: int = 16 * 1024 * 1024
    requests_per_second: int = 50
    detached_turn_seconds: int = 60


class SessionConfig(NamedTuple):
    """What a session runs with. store: a path, an address or `memory`. warnings: whole sentences to log.

    models: all that are configured, the agent's first. profiles: all by name, the agent's first, presets
    included. helpers: models for summaries, by the text that names them. mcp: None when nothing is said of
    it.
    redact: regular expressions; what fits them is taken out of prompts and results.
    """

    agent: AgentConfig
    acp: AcpSettings
    store: str
    warnings: tuple[str, ...] = ()
    models: tuple[ModelConfig, ...] = ()
    profiles: tuple[Profile, ...] = ()
    mcp: McpSettings | None = None
    tools: ToolConfig = ToolConfig()
    permissions: PermissionSettings = PermissionSettings()
    helpers: tuple[tuple[str, ModelConfig], ...] = ()
    redact: tuple[str, ...] = ()
    gateway: GatewaySettings = GatewaySettings()
