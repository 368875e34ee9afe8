"""What steps of a transcript are made of, and what is kept beside it: cut, goal, choices. Knows no store."""

from pydantic import BaseModel, ConfigDict

VERSION = 2
"""Of the session state beside the entries: 2 keeps the breadcrumb as a flag, 1 had only its text."""


class Step(BaseModel):
    """Base of all that is stored of a session."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Learned(Step):
    """What a provider told of one route, tokens. output: the limit of its answers. inferred: no error told
    the window; it showed in what was left of a longer prompt.
    """

    provider: str
    model: str
    window: int | None = None
    output: int | None = None
    inferred: bool = False


class Limits(Step):
    """The limits that were in force when the session's head was last written. count: of turns or entries."""

    count: int
    tokens: int


class GoalRecord(Step):
    """The goal in force: see GoalStep. position: of the turn's prompt among the messages, from 1, where an
    older record has that alone.
    """

    text: str
    turn_id: str = ""
    position: int = 0
    supersedes: bool = False


class SessionState(Step):
    """The session's cut, kept beside its entries: which turns the model still gets.

    first_turn_id: the oldest turn still kept ('': all are); dropped_turns: how many turns before it are gone
    from the history, never from the transcript. directories: folders beside the session's own.
    model, thought_level, profile, mode: as the user chose them for this session, '' as they are configured.
    held: turns before first_turn_id that are kept all the same, with a gap behind them. notes: what the model
    reads of dropped turns, '' for nothing. pins: turns that no trim takes.
    """

    version: int = VERSION
    first_turn_id: str = ""
    dropped_turns: int = 0
    history_has_trim_breadcrumb: bool = False
    directories: tuple[str, ...] = ()
    model: str = ""
    thought_level: str = ""
    profile: str = ""
    mode: str = ""
    learned: Learned | None = None
    limits: Limits | None = None
    held: tuple[str, ...] = ()
    notes: str = ""
    goal: GoalRecord | None = None
    pins: tuple[str, ...] = ()


class CallRecord(Step):
    """A tool call: `call_id` is ours, unique in the session; `id` is the provider's, which may repeat."""

    call_id: str
    id: str
    name: str
    arguments: str


class UsageRecord(Step):
    """Tokens as the provider counted them. Of the input, cached_tokens came out of its cache and
    cache_write_tokens went into it.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class RouteRecord(Step):
    """The route of a provider call, with what was learned of it. Tokens; None: not known, not set."""

    provider: str
    model: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    output_counted_apart: bool = False
    learned_window: int | None = None
    window_inferred: bool = False


class RequestRecord(Step):
    """A provider call as it was made, so that a replay can make it again and compare.

    setup: the digest of the SetupStep it was composed under. digest: sha256 of the whole request, hex.
    rows: how many were sent. tools: whether they were offered. goal: the turn in which the current goal was
    set. pins: the turns that were pinned.
    """

    setup: str
    digest: str
    rows: int
    calibration: float = 1.0
    tools: bool = True
    goal: str = ""
    pins: tuple[str, ...] = ()


class SizesRecord(Step):
    """The sizes that an overflow error stated, tokens, None where it stated none."""

    limit: int | None = None
    requested: int | None = None
    input: int | None = None
    output: int | None = None
    limits_output: bool = False
