"""A session's states and what moves it between them: one table. A missing row is the protocol error."""

from enum import StrEnum

from runtime.errors import InvalidRequest


class State(StrEnum):
    """Where a session stands."""

    IDLE = "idle"
    RUNNING = "running"
    CANCELLING = "cancelling"
    CLOSED = "closed"


class Signal(StrEnum):
    """What happens to it."""

    PROMPT = "prompt"
    CANCEL = "cancel"
    NEXT = "next turn begins"
    DONE = "turn ended"
    CLOSE = "close"


TABLE: dict[tuple[State, Signal], State] = {
    (State.IDLE, Signal.PROMPT): State.RUNNING,
    (State.RUNNING, Signal.PROMPT): State.RUNNING,
    (State.CANCELLING, Signal.PROMPT): State.CANCELLING,
    (State.IDLE, Signal.CANCEL): State.IDLE,
    (State.RUNNING, Signal.CANCEL): State.CANCELLING,
    (State.CANCELLING, Signal.CANCEL): State.CANCELLING,
    (State.CLOSED, Signal.CANCEL): State.CLOSED,
    (State.RUNNING, Signal.NEXT): State.RUNNING,
    (State.CANCELLING, Signal.NEXT): State.RUNNING,
    (State.RUNNING, Signal.DONE): State.IDLE,
    (State.CANCELLING, Signal.DONE): State.IDLE,
    (State.CLOSED, Signal.DONE): State.CLOSED,
    (State.CLOSED, Signal.NEXT): State.CLOSED,
    (State.IDLE, Signal.CLOSE): State.CLOSED,
    (State.RUNNING, Signal.CLOSE): State.CLOSED,
    (State.CANCELLING, Signal.CLOSE): State.CLOSED,
    (State.CLOSED, Signal.CLOSE): State.CLOSED,
}


def move(state: State, signal: Signal) -> State:
    """The next state. Raises InvalidRequest when the signal makes no sense there."""
    try:
        return TABLE[state, signal]
    except KeyError:
        raise InvalidRequest(f"The session is {state.value}: {signal.value} is not possible now.") from None
