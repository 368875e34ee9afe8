"""The provider-facing row and what hangs on it: plain frozen values, known to history and providers alike."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the provider named it. `arguments` is the string received, never re-encoded."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A declared attachment of a tool result. kind 'image' with a loadable target is priced as an image."""

    kind: str
    target: str


@dataclass(frozen=True, slots=True)
class Image:
    """A real image block of a prompt: base64 `data` and its MIME type, or a loadable `uri`."""

    mime_type: str
    data: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One provider-facing row. `origin='runtime'`: put in by the loop, opens no turn in a live session.

    reasoning: what the provider wants back with this reply's calls, opaque; only in the running turn.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    attachments: tuple[Attachment, ...] = ()
    images: tuple[Image, ...] = ()
    origin: Literal["user", "runtime"] | None = None
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told of a tool. `parameters` is a JSON schema as compact JSON text (stable bytes)."""

    name: str
    description: str
    parameters: str
