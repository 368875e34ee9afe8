"""A connection as the rest of the package sees it: tools as plain values, calls, its end; names made fit.

A tool's name for the model depends on the server's and the tool's own names alone, so it stays what it is
whichever servers come and go: calls in an old history still mean the same tool. Texts of servers are put on
one line. Knows no SDK: importing that takes a second, and only `connection` does.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from runtime.mcp.settings import ServerSettings
from runtime.values.errors import ToolError


class ServerTrouble(ToolError):
    """A server, or the way to it, failed; one line without any secret. lasting: trying again cannot help."""

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server describes it. looks: the server claims that it changes nothing."""

    name: str
    title: str
    description: str
    parameters: Mapping[str, object]
    looks: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server has. resources: it holds documents beside its tools."""

    tools: tuple[RemoteTool, ...] = ()
    resources: bool = False


class Link(Protocol):
    """An open connection. Every method may raise ServerTrouble, and may be cancelled at any time."""

    @property
    def ended(self) -> str:
        """Why the connection is of no more use, one line; '' while it is."""
        ...

    async def offer(self) -> Offer:
        """What the server has now, all its tools included."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Run a tool; the result in the protocol's own JSON form. Cancelled, it tells the server so."""
        ...

    async def resources(self) -> tuple[Mapping[str, object], ...]:
        """All resources and templates of resources, in the protocol's JSON form."""
        ...

    async def read(self, uri: str) -> Mapping[str, object]:
        """A resource's contents, in the protocol's JSON form."""
        ...


Connect = Callable[[ServerSettings, Callable[[], None]], AbstractAsyncContextManager[Link]]
"""Opens a connection, to be entered and left in one task. The function is called when the tools have
changed or the connection has ended; it only takes note.

Entering raises ServerTrouble, within the server's connect_timeout. Leaving closes the connection and ends a
child process.
"""

HIDDEN = "(hidden)"
SHORTEST_SECRET = 6
"""Shorter values (`1`, `true`) are no secrets, and would blank out half of any sentence."""


def one_line(text: str, limit: int = 200) -> str:
    """`text` with every run of blanks and control characters as one space, cut at `limit`."""
    plain = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * limit]).split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def without(text: str, secrets: Iterable[str]) -> str:
    """`text` with the values left out, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return text


LONGEST = 64
"""Characters that every provider takes."""
PREFIX = "mcp__"

_DIGEST = 8
_SIGNS = re.compile(r"[^A-Za-z0-9_-]")
# Nothing that could be taken for the two underscores between server and tool.
_PLAIN_SERVER = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_PLAIN_TOOL = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]*")


def tool_name(server: str, tool: str) -> str:
    """`mcp__server__tool`. A name that had to be changed or cut ends in a digest of the real ones."""
    plain = f"{PREFIX}{server}__{tool}"
    if len(plain) <= LONGEST and _PLAIN_SERVER.fullmatch(server) and _PLAIN_TOOL.fullmatch(tool):
        return plain
    real = f"{server}\0{tool}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(real).hexdigest()[:_DIGEST]
    room = LONGEST - len(PREFIX) - _DIGEST - 3
    shown = _SIGNS.sub("_", tool)[: room - room // 3]
    owner = _SIGNS.sub("_", server)[: room - len(shown)]
    return f"{PREFIX}{owner}__{shown}_{digest}"
