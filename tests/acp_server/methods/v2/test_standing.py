"""Where a session stands: it waits for a person only where nothing goes on beside the question."""

from acp_server.methods.v2.updates import Standing
from runtime.values.events import AgentText, ToolCallChanged, UsageChanged

RUNS = ToolCallChanged("c", "in_progress")
DONE = ToolCallChanged("c", "completed")


def state(standing: Standing) -> str:
    return standing.state


def begun() -> Standing:
    standing = Standing()
    standing.begin()
    return standing


def test_a_new_session_is_idle_whatever_is_said_of_it():
    standing = Standing(questions=1)
    standing.note(RUNS)
    assert state(standing) == "idle"


def test_a_question_holds_all_up():
    standing = begun()
    assert state(standing) == "running"
    standing.questions = 2
    assert state(standing) == "requires_action"
    standing.questions = 1
    assert state(standing) == "requires_action"
    standing.questions = 0
    assert state(standing) == "running"


def test_a_call_or_a_reply_beside_it_goes_on():
    standing = begun()
    standing.questions = 1
    standing.note(RUNS)
    assert state(standing) == "running"
    standing.note(DONE)
    assert state(standing) == "requires_action"
    standing.note(AgentText("m", "x"))
    assert state(standing) == "running"
    standing.note(UsageChanged(1, 2))
    assert state(standing) == "requires_action"


def test_the_call_that_asks_does_not_count_as_going_on():
    standing = begun()
    standing.note(RUNS)
    standing.forms = 1
    assert state(standing) == "requires_action"
    standing.note(ToolCallChanged("d", "in_progress"))
    assert state(standing) == "running"


def test_the_past_is_not_taken_for_the_present():
    standing = begun()
    with standing.replay():
        standing.note(RUNS)
    standing.questions = 1
    assert state(standing) == "requires_action"


def test_a_new_turn_knows_nothing_of_the_one_before():
    standing = begun()
    standing.questions, standing.forms = 1, 1
    standing.note(RUNS)
    standing.begin()
    assert (state(standing), standing.questions, standing.calls) == ("running", 0, set())
