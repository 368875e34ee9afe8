"""What a session's transcript holds: one frozen model a step, versioned. Knows nothing of who stores it.

The stored form is the model's JSON with its `kind`; a reader ignores keys it does not know, so an older
version reads what a newer one wrote as far as it understands it.
"""

from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter

from schemas.session_state import CallRecord as CallRecord
from schemas.session_state import RequestRecord as RequestRecord
from schemas.session_state import RouteRecord as RouteRecord
from schemas.session_state import SessionState as SessionState
from schemas.session_state import SizesRecord as SizesRecord
from schemas.session_state import Step as Step
from schemas.session_state import UsageRecord as UsageRecord

Outcome = Literal["done", "cancelled", "error", "no_model", "refused"]
TokenSource = Literal["estimate", "calibrated", "provider"]


class SetupStep(Step):
    """What requests are composed under, beside the conversation itself. Stored once for each digest.

    system: the leading system rows. tools: (name, description, parameters as JSON text) each. profile: all
    settings of the retention profile. counter: the name of the token counter.
    """

    kind: Literal["setup"] = "setup"
    digest: str
    route: RouteRecord
    profile: dict[str, object]
    system: tuple[str, ...] = ()
    tools: tuple[tuple[str, str, str], ...] = ()
    prompt_tools: bool = False
    counter: str = "heuristic"


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
    request: RequestRecord | None = None


class DiffRecord(Step):
    """A change of a file as it was shown. old_text None: the file was new."""

    path: str
    old_text: str | None = None
    new_text: str


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
    diffs: tuple[DiffRecord, ...] = ()
    raw_input: dict[str, object] = Field(default_factory=dict)


class GuardrailStep(Step):
    """A call that a person was asked about. answer: `allowed`, or the reason that the model reads."""

    kind: Literal["guardrail"] = "guardrail"
    call_id: str
    allowed: bool
    answer: str


class RuntimeStep(Step):
    """A user row that the loop put in itself (the iteration-limit prompt)."""

    kind: Literal["runtime"] = "runtime"
    text: str


class AttemptStep(Step):
    """A request that failed or was refused. learned_window: tokens, 0 when the error named none.

    overflow: what the error said of sizes, when it was a context overflow, or perhaps one, and a smaller
    request followed. share: of the refused one, what that aimed at; None for two thirds.
    pictures: those of the turn's prompt were the reason; from then on they are left out.
    """

    kind: Literal["attempt"] = "attempt"
    error: str
    learned_window: int = 0
    overflow: SizesRecord | None = None
    request: RequestRecord | None = None
    pictures: bool = False
    share: float | None = None


class SummaryUsage(Step):
    """What a summary cost. route: `provider/model` of the model that was asked."""

    route: str
    usage: UsageRecord


class TrimStep(Step):
    """A trim, as the client was told of it, with what it was decided on.

    first_turn_id, held: the cut that it left, as in `SessionState`. summary: the notes that stand for all
    that was dropped so far, '' when there are none; summary_failure: why none were made. before_source,
    after_source: where the token figures are from, None in older records. note: as the client was told it.
    rounds_cut: of how many tool rounds the newest turn's results are shortened behind it; None: as before it.
    """

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
    first_turn_id: str = ""
    held: tuple[str, ...] = ()
    summary: str = ""
    summary_failure: str = ""
    used: SummaryUsage | None = None
    before_source: TokenSource | None = None
    after_source: TokenSource | None = None
    note: str = ""
    rounds_cut: int | None = None


class ContextStep(Step):
    """A pass of a context trimmer over the running turn, before a provider call.

    attempt: how many attempts of the call had failed before it. rounds: how many there were; kept: those that
    stay, from the first to the last each, from 0. outputs: texts in the place of results: round, place in it,
    text. persist: the turn is changed for good. summary: the text that stands for what went. failure: why it
    was not trimmed; then nothing of this counts. dropped_messages: rows, or results, told to the client;
    kept_turns: told with them, the running turn among them (0 in older records). rounds_cut: see `TrimStep`.
    """

    kind: Literal["context"] = "context"
    iteration: int
    attempt: int = 0
    strategy: str
    rounds: int
    kept: tuple[tuple[int, int], ...] = ()
    outputs: tuple[tuple[int, int, str], ...] = ()
    persist: bool = False
    summary: str = ""
    failure: str = ""
    trim_id: str = ""
    dropped_messages: int = 0
    kept_turns: int = 0
    used: SummaryUsage | None = None
    rounds_cut: int | None = None


class GoalStep(Step):
    """What the session is about from now on, as the user or the model declared it in a turn.

    supersedes: there were requests before that turn.
    """

    kind: Literal["goal"] = "goal"
    text: str
    turn_id: str
    supersedes: bool = False


class ExpandStep(Step):
    """Turns that had been dropped came back, by the user's own wish, and the cut that is in force then."""

    kind: Literal["expand"] = "expand"
    restored_turns: int
    kept_turns: int
    first_turn_id: str = ""
    dropped_turns: int = 0
    held: tuple[str, ...] = ()


class EndStep(Step):
    """A turn's end. told: text the client was shown as the turn's last words. excluded: not for the model."""

    kind: Literal["end"] = "end"
    outcome: Outcome
    stop_reason: str
    told_id: str = ""
    told: str = ""
    excluded: bool = False


AnyStep = Annotated[
    PromptStep
    | PartialStep
    | ReplyStep
    | ToolStep
    | RuntimeStep
    | AttemptStep
    | TrimStep
    | EndStep
    | GuardrailStep
    | SetupStep
    | ExpandStep
    | ContextStep
    | GoalStep,
    Field(discriminator="kind"),
]


ANY_STEP: TypeAdapter[AnyStep] = TypeAdapter(AnyStep, config=ConfigDict(defer_build=True))

KINDS = frozenset(
    get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(AnyStep)[0])
)
"""The kinds of steps that this version knows."""
