"""What happened in a session, as frozen values. Knows nothing of who listens or of any wire.

A turn emits these in order; `acp_server.acp.updates` turns each into its `session/update`s.
Message ids are opaque and unique in the session; a tool call's id is ours, unique in the session.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from runtime.values.model import Cost
from runtime.values.profiles import Offer

ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolStatus = Literal["pending", "in_progress", "completed", "failed"]
Severity = Literal["info", "warning", "error"]
TokenSource = Literal["estimate", "calibrated", "provider"]


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A prompt's block as the user sent it, for replay. `block` is the content block as received."""

    message_id: str
    block: Mapping[str, object]
    restored_dropped_turns: int = 0
    """On replay, for the first turn still known to the model: how many turns before it are not."""


@dataclass(frozen=True, slots=True)
class AgentText:
    """A piece of the visible answer."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentThought:
    """A piece of the model's reasoning."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file: absolute path, 1-based line."""

    path: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A change of a file, shown as such. path: absolute. old_text None: the file is new.

    Of a large file both texts are the part around the change.
    """

    path: str
    old_text: str | None
    new_text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model asked for a tool. On replay `status` is final and `content` is set."""

    call_id: str
    name: str
    title: str
    kind: ToolKind
    raw_input: Mapping[str, object]
    locations: tuple[Location, ...] = ()
    status: ToolStatus = "pending"
    content: str | None = None
    diffs: tuple[FileDiff, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCallChanged:
    """A later state of a call. `content` (text shown to the user) replaces what was there; None keeps it.

    diffs and terminal_id (a terminal of the client, '' for none) are shown beside a content that is set.
    """

    call_id: str
    status: ToolStatus
    content: str | None = None
    diffs: tuple[FileDiff, ...] = ()
    terminal_id: str = ""


@dataclass(frozen=True, slots=True)
class UsageChanged:
    """Context in use, tokens. `size` is the model's window when known, else the budget (`size_is_budget`).

    cost: of the whole session so far, None when no price is configured.
    """

    used: int
    size: int
    size_is_budget: bool = False
    cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class TrimTokens:
    """Token figures of a trim: the budget it aimed under, before, after, and where each number is from."""

    budget: int
    before: int
    after: int
    before_source: TokenSource = "estimate"
    after_source: TokenSource = "estimate"


@dataclass(frozen=True, slots=True)
class HistoryTrimmed:
    """Whole turns (or parts of a running turn) left what the model sees. Never silent.

    dropped_messages: provider-facing rows as recorded, >= 1. kept_turns counts the running turn.
    tokens is None for a trim by the count limit alone. trim_id: opaque, unique in the session.
    """

    dropped_messages: int
    dropped_turns: int
    kept_turns: int
    reason: str
    strategy: str
    trim_id: str
    tokens: TrimTokens | None = None
    used: int = 0
    """Context in use after the trim and its limit, tokens, for the client's meter."""
    size: int = 0
    note: str = ""
    """A sentence for the client that the figures alone do not tell (a setting that was overruled)."""
    size_is_budget: bool = False
    """True: `size` is the budget, as the model's window is not known (as in UsageChanged)."""
    summary: str = ""
    """What now stands for it in what the model sees, '' for nothing."""


@dataclass(frozen=True, slots=True)
class TitleChanged:
    """The session's title or its last change. updated_at: ISO 8601, UTC."""

    title: str | None
    updated_at: str


@dataclass(frozen=True, slots=True)
class CommandsAvailable:
    """The slash commands on offer: (name, description, hint or None), the whole list."""

    commands: tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True, slots=True)
class OptionsChanged:
    """What the session can be set to and is, the whole list: something was set otherwise than by the
    client.
    """

    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The permission mode that is in force from now on."""

    mode_id: str


PlanPriority = Literal["high", "medium", "low"]
PlanStatus = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One step of the agent's plan."""

    content: str
    priority: PlanPriority = "medium"
    status: PlanStatus = "pending"


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The agent's plan, whole each time."""

    entries: tuple[PlanEntry, ...]


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something the person should know that is no part of the conversation."""

    severity: Severity
    title: str
    description: str = ""


Event = (
    UserMessage
    | AgentText
    | AgentThought
    | ToolCallStarted
    | ToolCallChanged
    | UsageChanged
    | HistoryTrimmed
    | TitleChanged
    | CommandsAvailable
    | OptionsChanged
    | ModeChanged
    | PlanChanged
    | Noticed
)
