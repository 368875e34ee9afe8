"""What a session's transcript holds: one frozen model a step, versioned. Knows nothing of who stores it.

The stored form is the model's JSON with its `kind`; a reader ignores keys it does not know, so an older
version reads what a newer one wrote as far as it understands it.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

VERSION = 2
"""Of the session state beside the entries: 2 keeps the breadcrumb as a flag, 1 had only its text."""

Outcome = Literal["done", "cancelled", "error", "no_model", "refused"]


class Step(BaseModel):
    """Base of all entries."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class CallRecord(Step):
    """A tool call: `call_id` is ours, unique in the session; `id` is the provider's, which may repeat."""

    call_id: str
    id: str
    name: str
    arguments: str


class UsageRecord(Step):
    """Tokens as the provider counted them."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


class PromptStep(Step):
    """An accepted prompt. text: the user row as the model gets it; blocks: the content blocks as received."""

    kind: Literal["prompt"] = "prompt"
    message_id: str
    text: str
    blocks: tuple[dict[str, object], ...]


class PartialStep(Step):
    """Streamed text that was shown and is part of no reply yet. The reply of its iteration supersedes it."""

    kind: Literal["partial"] = "partial"
    iteration: int
    message_id: str = ""
    text: str = ""
    thought_id: str = ""
    thought: str = ""
    prompt_mode: bool = False


class ReplyStep(Step):
    """An accepted reply, or the part of one that was shown before it was broken off (`interrupted`).

    prompt_mode: the calls stand in the text, as the model wrote them. reasoning: what the provider wants
    back with the results of the calls, JSON of its adapter's own; '' for nothing.
    """

    kind: Literal["reply"] = "reply"
    iteration: int
    message_id: str
    text: str
    thought_id: str = ""
    thought: str = ""
    calls: tuple[CallRecord, ...] = ()
    usage: UsageRecord | None = None
    stop: str = "end"
    interrupted: bool = False
    prompt_mode: bool = False
    reasoning: str = ""


class ToolStep(Step):
    """A tool's result, whole. limit: bytes of it that the model gets (0: all). shown: for the person."""

    kind: Literal["tool"] = "tool"
    iteration: int
    call_id: str
    status: Literal["completed", "failed"]
    text: str
    limit: int = 0
    shown: str = ""
    title: str = ""
    tool_kind: str = "other"
    locations: tuple[tuple[str, int | None], ...] = ()
    raw_input: dict[str, object] = Field(default_factory=dict)


class RuntimeStep(Step):
    """A user row that the loop put in itself (the iteration-limit prompt)."""

    kind: Literal["runtime"] = "runtime"
    text: str


class AttemptStep(Step):
    """A request that failed or was refused. learned_window: tokens, 0 when the error named none."""

    kind: Literal["attempt"] = "attempt"
    error: str
    learned_window: int = 0


class TrimStep(Step):
    """A trim, as the client was told of it, with what it was decided on."""

    kind: Literal["trim"] = "trim"
    trim_id: str
    dropped_messages: int
    dropped_turns: int
    kept_turns: int
    reason: str
    strategy: str
    token_budget: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    calibration: float = 1.0
    window: int = 0


class EndStep(Step):
    """A turn's end. told: text the client was shown as the turn's last words. excluded: not for the model."""

    kind: Literal["end"] = "end"
    outcome: Outcome
    stop_reason: str
    told_id: str = ""
    told: str = ""
    excluded: bool = False


AnyStep = Annotated[
    PromptStep | PartialStep | ReplyStep | ToolStep | RuntimeStep | AttemptStep | TrimStep | EndStep,
    Field(discriminator="kind"),
]


class SessionState(Step):
    """The session's cut, kept beside its entries: which turns the model still gets.

    first_turn_id: the oldest turn still kept ('': all are); dropped_turns: how many turns before it are gone
    from the history, never from the transcript.
    """

    version: int = VERSION
    first_turn_id: str = ""
    dropped_turns: int = 0
    history_has_trim_breadcrumb: bool = False


ANY_STEP: TypeAdapter[AnyStep] = TypeAdapter(AnyStep, config=ConfigDict(defer_build=True))
