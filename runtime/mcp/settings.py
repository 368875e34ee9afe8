"""What is known of an MCP server before it is reached, as frozen values. Reads no file and no variable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

TransportKind = Literal["stdio", "http", "sse"]

CONNECT_TIMEOUT = 30
"""Seconds from the start of a server to its first answer. Package runners download first."""
CALL_TIMEOUT = 300
FIRST_TURN_WAIT = 5
MOST_TOOLS = 100
"""Tools of all servers together that a model is told of: with ours below the 128 that some providers take."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One server. Secrets stand in env and headers, which no text of this object shows. Times in seconds.

    pass_env: names of our own variables that the child gets as well. bearer_env: the variable whose value is
    sent as a bearer token. cwd: '' for the session's folder. tools: names to offer, None for all.
    """

    name: str
    kind: TransportKind = "stdio"
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    pass_env: tuple[str, ...] = ()
    cwd: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    bearer_env: str = ""
    tools: tuple[str, ...] | None = None
    connect_timeout: float = CONNECT_TIMEOUT
    call_timeout: float = CALL_TIMEOUT


class Tuning(NamedTuple):
    """What the user's settings say of a server, whoever defines it."""

    enabled: bool = True
    tools: tuple[str, ...] | None = None
    connect_timeout: float = CONNECT_TIMEOUT
    call_timeout: float = CALL_TIMEOUT

    def of(self, server: ServerSettings) -> ServerSettings:
        """The server as it is to be used."""
        return replace(
            server,
            tools=self.tools,
            connect_timeout=self.connect_timeout,
            call_timeout=self.call_timeout,
        )


class McpSettings(NamedTuple):
    """All of a session's settings for MCP. servers: those that the user's settings define.

    tuning: by server name; it holds for servers that the client names, too. first_turn_wait: seconds that the
    first prompt waits for servers. max_tool_tokens: for all schemas together, None for a share of the budget.
    """

    servers: tuple[ServerSettings, ...] = ()
    tuning: Mapping[str, Tuning] = MappingProxyType({})
    first_turn_wait: float = FIRST_TURN_WAIT
    max_tools: int = MOST_TOOLS
    max_tool_tokens: int | None = None

    def for_session(self, named: tuple[ServerSettings, ...]) -> tuple[ServerSettings, ...]:
        """The servers of a session. named: by its client; of two with one name the client's is used.

        Two of the client's own with one name are both kept, the later one under another name.
        """
        taken: dict[str, ServerSettings] = {}
        for server in named:
            name = free_name(server.name, taken)
            taken[name] = replace(server, name=name)
        for server in self.servers:
            taken.setdefault(server.name, server)
        tuned = ((self.tuning.get(name, Tuning()), server) for name, server in taken.items())
        return tuple(tuning.of(server) for tuning, server in tuned if tuning.enabled)


class Surroundings(NamedTuple):
    """Where servers run: the session's folders, and the variables that they may be given.

    roots: all folders of the session at the moment of asking.
    """

    cwd: Path
    roots: Callable[[], tuple[Path, ...]]
    env: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Surroundings(cwd={self.cwd!r})"


def free_name(name: str, taken: Mapping[str, object]) -> str:
    """The name, with a number if it is taken."""
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}-{number}"
    return free
