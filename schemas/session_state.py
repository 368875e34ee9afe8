"""What is kept beside a transcript: the session's cut, its goal, its choices. Knows no store."""

from pydantic import BaseModel, ConfigDict

VERSION = 2
"""Of the session state beside the entries: 2 keeps the breadcrumb as a flag, 1 had only its text."""


class Step(BaseModel):
    """Base of all that is stored of a session."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Learned(Step):
    """What a provider's errors told of one route, tokens. output: the limit of its answers."""

    provider: str
    model: str
    window: int | None = None
    output: int | None = None


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
