"""The table of session states: every pair is either in it or an error with both words in it."""

import itertools

import pytest

from runtime.session.session import TABLE, Signal, State, move
from runtime.values.errors import InvalidRequest


@pytest.mark.parametrize(("state", "signal"), sorted(itertools.product(State, Signal)))
def test_each_pair_moves_as_the_table_says_or_is_refused(state: State, signal: Signal) -> None:
    if (state, signal) in TABLE:
        assert move(state, signal) is TABLE[state, signal]
        return
    with pytest.raises(InvalidRequest, match=state.value):
        move(state, signal)


def test_a_closed_session_takes_no_prompt_and_never_opens_again() -> None:
    assert (State.CLOSED, Signal.PROMPT) not in TABLE
    assert {after for (before, _), after in TABLE.items() if before is State.CLOSED} == {State.CLOSED}


def test_every_running_state_has_a_way_back_to_idle() -> None:
    assert move(State.RUNNING, Signal.DONE) is State.IDLE
    assert move(State.CANCELLING, Signal.DONE) is State.IDLE
