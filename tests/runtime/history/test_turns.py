"""The live history: joining prompts, system text beside the turns, what survives a drop, stable ids."""

import pytest

from runtime.history.live.history import History, restore_history
from runtime.history.request.compose import compose
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Attachment, Row
from tests.runtime.history.helpers import SHELL, add_turn, called, plain_history, result, said, user

ROUTE = Route("p", "m", 100_000)


def test_a_prompt_that_starts_with_tool_results_joins_the_turn_before_it():
    history = History()
    assert history.open_turn("t1", user("[Tool results]\npasted")) == "t1"
    history.close_turn()
    assert history.open_turn("t2", user("[Tool results] again")) == "t1"
    history.close_turn()
    assert history.open_turn("t3", user(" [Tool results] with a space")) == "t3"
    assert [turn.turn_id for turn in history.turns] == ["t1", "t3"]


def test_rows_of_the_runtime_open_no_turn():
    history = History()
    history.open_turn("t1", user("go"))
    history.append(
        [said("?"), Row("user", "[SOP: x]", origin="runtime"), Row("user", "steer", origin="runtime")]
    )
    assert history.turn_count == 1
    assert history.row_count == 4


def test_append_needs_a_running_turn():
    history = plain_history(1)
    with pytest.raises(ValueError, match="no turn is running"):
        history.append([said("late")])


def test_late_system_entries_survive_a_trim_and_are_sent_in_one_row():
    history = plain_history(3, system=("one", ""))
    history.open_turn("t9", user("q"))
    history.append([Row("system", "late")])
    composed = compose(history, Profile(max_history_messages=1), ROUTE)
    assert composed.rows()[0] == Row("system", "one\n\nlate")
    assert [row.role for row in composed.rows()] == ["system", "user", "user"]


def test_dropping_takes_whole_turns_from_both_faces_and_sets_the_flag():
    history = plain_history(4)
    left = history.without_oldest(2)
    assert (left.turn_count, left.row_count, left.crumb_present) == (2, 4, True)
    assert left.first_kept_turn_id == "t2"
    assert [len(turn.entries) for turn in left.turns] == [2, 2]
    assert (history.turn_count, history.crumb_present) == (4, False)
    assert history.without_oldest(99).turn_count == 1
    assert history.without_oldest(0).crumb_present is False


def test_a_history_and_the_one_made_from_it_go_separate_ways():
    history = plain_history(3)
    other = history.without_oldest(1)
    add_turn(other, "left", [user("l"), said("l")])
    add_turn(history, "right", [user("r"), said("r")])
    add_turn(history, "right2", [user("r2"), said("r2")])
    assert [turn.turn_id for turn in other.turns] == ["t1", "t2", "left"]
    assert [turn.turn_id for turn in history.turns] == ["t0", "t1", "t2", "right", "right2"]


def test_a_reused_call_id_gets_a_name_that_stays():
    history = History()
    for index in range(3):
        add_turn(history, f"t{index}", [user("q"), called("c"), result("c"), said("done")])
    history.open_turn("t3", user("q"))
    profile = Profile(keep_tool_context_turns=9)
    before = compose(history, profile, ROUTE, [SHELL])
    names = [row.tool_call_id for row in before.rows() if row.role == "tool"]
    assert names == ["c", "c_2", "c_3"]
    after = compose(history.without_oldest(1), profile, ROUTE, [SHELL])
    assert [row.tool_call_id for row in after.rows() if row.role == "tool"] == ["c_2", "c_3"]
    assert after.segments[-3:] == before.segments[-3:]


def test_a_restored_history_names_reused_ids_as_the_live_one_did():
    rows = [user("q"), called("c"), result("c"), said("done")]
    restored = restore_history([("t3", rows)], crumb_present=True, taken_ids=["c", "c", "d"])
    sent = compose(restored, Profile(), ROUTE, [SHELL]).rows()
    assert [row.tool_call_id for row in sent if row.role == "tool"] == ["c_3"]


def test_declared_pictures_are_priced_once_more_when_their_turn_is_no_longer_current():
    shot = Row("tool", "a picture", tool_call_id="c", attachments=(Attachment("image", "/a.png"),))
    history = History()
    history.open_turn("t1", user("shoot"))
    history.append([called("c"), shot])
    current = compose(history, Profile(), ROUTE, [SHELL])
    history.append([said("done")])
    history.close_turn()
    history.open_turn("t2", user("next"))
    later = compose(history, Profile(), ROUTE, [SHELL])
    assert current.message_tokens > 1600
    assert later.message_tokens < 100
    assert all(not row.attachments for row in later.rows())
    assert history.turns[0].rows[2] is shot


def test_the_estimate_of_all_that_is_kept_is_a_running_sum():
    history = plain_history(5)
    assert history.tokens == compose(history, Profile(), ROUTE, collapse=False).message_tokens
    left = history.without_oldest(3)
    assert left.tokens == compose(left, Profile(), ROUTE, collapse=False).message_tokens
