"""Settings as the server uses them, and what the command line and the environment give of them, as text.

Frozen values with nothing left to look up. Knows no file and no schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from acp_server.acp.client_options import AcpSettings
    from runtime.mcp.settings import McpSettings
    from runtime.permission.modes import ModeId
    from runtime.providers.settings import ProviderSettings
    from runtime.values.model import Price
    from runtime.values.profiles import Profile, Route


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


if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping

PREFIX = "WHOLETURN_"
NO_SETTINGS = ("WHOLETURN_CONFIG_DIR", "WHOLETURN_DATA_DIR", "WHOLETURN_LOG", "WHOLETURN_UNSTABLE")
"""Variables of ours that stand for no key of the file."""

NAMED = (
    ("provider", "NAME", "provider of the default agent, or a kind of provider"),
    ("model", "NAME", "model of the default agent"),
    ("profile", "NAME", "runtime profile of the default agent, or a preset's name"),
    ("mode", "MODE", "permission mode that sessions begin in: ask, accept_edits, plan or yolo"),
    ("store", "PATH", 'where sessions are kept: a file, "memory" or postgresql://…'),
)


class Options(NamedTuple):
    """What was given as flags. assignments: `key=value` texts of --set, in order."""

    config: str | None = None
    assignments: tuple[str, ...] = ()
    provider: str | None = None
    model: str | None = None
    profile: str | None = None
    mode: str | None = None
    store: str | None = None

    def set_something(self) -> bool:
        """Whether a flag sets something (a file named by --config counts by what is in it)."""
        return bool(self.assignments) or any(getattr(self, name) is not None for name, _, _ in NAMED)


def add_options(parser: ArgumentParser) -> None:
    """Give a command the flags that change settings; read them back with `options_of`.

    A flag that is not given leaves no trace, so the same flags may stand before and after a command's name.
    """
    from argparse import SUPPRESS  # the caller has it loaded; a start without a command line has not

    group = parser.add_argument_group("settings", argument_default=SUPPRESS)
    group.add_argument("--config", metavar="FILE", help="one more settings file, over the others")
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="assignments",
        action="append",
        help="set one key, e.g. runtime_profiles.default.max_context_tokens=12000",
    )
    for name, value, text in NAMED:
        group.add_argument(f"--{name}", metavar=value, help=text)


def options_of(arguments: Namespace) -> Options:
    """The flags of a parsed command line; a command without them gives none."""
    given = vars(arguments)
    named = {name: given.get(name) for name in ("config", *(name for name, _, _ in NAMED))}
    return Options(assignments=tuple(given.get("assignments") or ()), **named)


def given_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that set something; an empty one counts as not set."""
    return {
        name: value
        for name, value in env.items()
        if name.startswith(PREFIX) and value and name not in NO_SETTINGS
    }
