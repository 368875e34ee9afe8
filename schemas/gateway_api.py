"""What the gateway's read-only `/api` is asked and answers, in snake_case; OpenAPI describes it.

Tokens are estimates unless a source says otherwise; times are ISO 8601 UTC. An `entry` is the number of a
line of the transcript, from 1, a `turn` the number of its prompt, from 1. Pages go by place, not by count.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

TokenSource = Literal["estimate", "calibrated", "provider"]


class ApiModel(BaseModel):
    """Base of all answers. Every field is always there; what is not known is null."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Problem(ApiModel):
    """Why a request was not served."""

    status: int
    message: str


class ProblemAnswer(ApiModel):
    """The answer to a request that was not served."""

    error: Problem


class SessionLine(ApiModel):
    """A session in the list. open: in this gateway; running: a turn runs in it here."""

    session_id: str
    title: str | None
    cwd: str
    created_at: str
    updated_at: str
    open: bool
    running: bool
    dropped_turns: int


class SessionList(ApiModel):
    """Newest change first. next_cursor null: that was the last page."""

    sessions: tuple[SessionLine, ...]
    next_cursor: str | None


class SessionAnswer(SessionLine):
    """One session. first_kept_turn: the oldest turn that the model still gets, held ones aside."""

    turns: int
    entries: int
    trims: int
    first_kept_turn: int
    pinned_turns: tuple[int, ...]
    goal: str | None
    model: str | None
    profile: str | None
    mode: str | None


class TurnShare(ApiModel):
    """A kept turn's part of the next request. tool_tokens: of its tool rows, a part of `tokens`."""

    turn: int | None
    turn_id: str
    tokens: int
    tool_tokens: int
    collapsed: bool
    saved_tokens: int
    pinned: bool
    goal: bool
    leaves_next: bool


class ContextAnswer(ApiModel):
    """The next request of a session, piece by piece, uncalibrated tokens; the pieces make `estimated`.

    used: as the provider would count it. A trim starts above `trims_above`; `free` is what is left of that.
    source `live`: as the open session has it; `stored`: made again out of the store under today's settings.
    """

    session_id: str
    source: Literal["live", "stored"]
    model: str
    profile: str
    system: int
    tools: int
    breadcrumb: int
    notes: int
    turns: tuple[TurnShare, ...]
    tool_rows: int
    estimated: int
    used: int
    used_source: TokenSource
    trims_above: int
    free: int
    window: int | None
    dropped_turns: int
    saved_tokens: int


class CutText(ApiModel):
    """A text's beginning. length: of the whole of it, characters."""

    text: str
    length: int


class TrimTokensAnswer(ApiModel):
    """The token figures of a trim. budget: what it aimed under."""

    budget: int | None
    before: int
    after: int
    before_source: TokenSource
    after_source: TokenSource


class TurnRange(ApiModel):
    """Turns from one to another, both included."""

    first: int
    last: int


class TrimLine(ApiModel):
    """A notice as it was told. turn, call: before which of a turn's requests (from 1), null: outside of one.

    dropped: which turns left, as far as that is recorded. summary: what stands for them; summary_failure: why
    nothing does although it should. restored_turns: of the kind `expanded` alone.
    """

    type: Literal["history_trimmed", "history_expanded"]
    entry: int
    session_id: str
    trim_id: str | None
    turn_id: str
    turn: int | None
    call: int | None
    dropped_messages: int
    dropped_turns: int
    kept_turns: int
    restored_turns: int
    reason: str
    strategy: str
    note: str
    tokens: TrimTokensAnswer | None
    first_kept_turn: int | None
    dropped: tuple[TurnRange, ...]
    summary: CutText | None
    summary_failure: str | None


class TrimList(ApiModel):
    """Notices, oldest first. next_after, previous_before: for the page behind and before; null: no more."""

    trims: tuple[TrimLine, ...]
    next_after: int | None
    previous_before: int | None


class DiffPart(ApiModel):
    """A change of a file. old null: the file was new."""

    path: str
    old: CutText | None
    new: CutText


class TextPart(ApiModel):
    """What was said: by the agent, as a thought, or by the product itself (`note`)."""

    type: Literal["text", "thought", "note"]
    text: CutText


class ToolPart(ApiModel):
    """A tool call with what became of it. input: JSON text."""

    type: Literal["tool"] = "tool"
    call_id: str
    name: str
    title: str
    kind: str
    status: str
    input: CutText
    content: CutText
    diffs: tuple[DiffPart, ...]


class TrimPart(ApiModel):
    """The place of a notice in the transcript."""

    type: Literal["trim"] = "trim"
    trim: TrimLine


Part = Annotated[TextPart | ToolPart | TrimPart, Field(discriminator="type")]
TurnView = Literal["sent", "collapsed", "dropped", "never_sent", "between"]


class TurnAnswer(ApiModel):
    """A turn. view: what the model gets of it now: all, without its tool traffic, nothing any more, or never.

    `between`: what happened outside of turns; number and prompt are null. entry: its first, last_entry: its
    last. attachments: the kinds of the prompt's blocks that are no text. dropped_by: why it left. outcome
    `running`: here; `open`: no end is recorded yet, so it runs elsewhere or its process has died.
    """

    number: int | None
    turn_id: str
    entry: int
    last_entry: int
    view: TurnView
    pinned: bool
    goal: bool
    outcome: Literal["done", "cancelled", "error", "no_model", "refused", "crash", "running", "open"] | None
    prompt: CutText | None
    attachments: tuple[str, ...]
    parts: tuple[Part, ...]
    dropped_by: TrimLine | None


class TranscriptPage(ApiModel):
    """Turns, oldest first. next_after, previous_before: for the page behind and before; null: no more."""

    session_id: str
    turns: tuple[TurnAnswer, ...]
    next_after: int | None
    previous_before: int | None


class RequestPoint(ApiModel):
    """A provider call as it was recorded. Tokens: fixed (system prompt, tools), beside (breadcrumb, notes),
    older (collapsed turns), whole (turns sent whole) and running (the turn itself) make `estimated`.

    call: of the turn, from 1. used: as the provider would count it; reported: as it did. trims: the notices
    before it.
    """

    turn: int | None
    call: int
    estimated: int
    used: int
    reported: int | None
    fixed: int
    beside: int
    older: int
    whole: int
    running: int
    collapsed_turns: int
    kept_turns: int
    trims_above: int | None
    window: int | None
    trims: tuple[str, ...]
    dropped_turns: int
    dropped_messages: int


class TimelinePage(ApiModel):
    """The requests of some turns, oldest first. next_after, previous_before: as in a transcript's page."""

    session_id: str
    requests: tuple[RequestPoint, ...]
    next_after: int | None
    previous_before: int | None
