"""What a fixture consists of: one frozen value a line. Patterns and messages are JSON values as parsed."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to a request of the agent: a result, or an error object."""

    value: object
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Awaited:
    """A frame that is waited for. required is False for one that may stay away."""

    pattern: object
    answer: Answer | None = None
    required: bool = True


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message; `jsonrpc` is put in when absent."""

    message: object


@dataclass(frozen=True, slots=True)
class SendText:
    """Send text as it is, no newline added."""

    text: object


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Send bytes as they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Expect:
    """The next frame must match. timeout: seconds, None for the run's own."""

    awaited: Awaited
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Until:
    """Skip frames until one matches."""

    awaited: Awaited
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """The next frames match these, in whatever order."""

    members: tuple[Awaited, ...]
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Optional:
    """A frame that may come before what the next waiting step waits for."""

    awaited: Awaited


@dataclass(frozen=True, slots=True)
class Ignore:
    """From here on, frames like this are taken out (and answered). None: no longer any."""

    awaited: Awaited | None


@dataclass(frozen=True, slots=True)
class Nothing:
    """No frame like this may come for `seconds`. Other frames wait for later steps."""

    pattern: object
    seconds: float


@dataclass(frozen=True, slots=True)
class Text:
    """What the agent said since the last prompt or `text` step. session: only in that one."""

    pattern: object
    session: object = None


@dataclass(frozen=True, slots=True)
class Close:
    """Close the agent's stdin."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Send the agent's process (not its children) a signal."""

    signal: int


@dataclass(frozen=True, slots=True)
class Restart:
    """End the agent and start it anew; variables stay."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The agent ends, with a status that matches (minus the signal's number when killed)."""

    pattern: object
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Set:
    """Give variables their values."""

    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Env:
    """Environment variables for the next start of the agent."""

    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Write:
    """Write a file below `$CWD`."""

    path: str
    content: object


@dataclass(frozen=True, slots=True)
class Note:
    """Says what comes next; shown in a failure."""

    text: str


Action = (
    Send
    | SendText
    | SendBytes
    | Expect
    | Until
    | AnyOrder
    | Optional
    | Ignore
    | Nothing
    | Text
    | Close
    | Kill
    | Restart
    | Exit
    | Set
    | Env
    | Write
    | Note
)


@dataclass(frozen=True, slots=True)
class Step:
    """An action and where it stands. source: the line, for reports."""

    line: int
    action: Action
    source: str


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed fixture. name: as given. folder: where it lies, absolute."""

    name: str
    folder: str
    steps: tuple[Step, ...]
