"""Calls and results: the sweeps on any rows, and the odd cases by name."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.history.rows.pairs import (
    pairs_ok,
    remove_orphaned_tool_messages,
    repair,
    strip_orphaned_tool_calls_from_assistants,
    unique_call_ids,
)
from runtime.history.rows.trim import RowCache
from runtime.values.rows import Row
from tests.runtime.history.helpers import called, result, said, user
from tests.runtime.history.strategies import EXAMPLES, flat_rows


@EXAMPLES
@given(flat_rows())
def test_repaired_rows_are_whole_and_stay_as_they_are(rows):
    repaired = repair(rows)
    assert pairs_ok(repaired.rows)
    again = repair(repaired.rows)
    assert (again.rows, again.removed_rows, again.stripped_calls) == (repaired.rows, 0, 0)
    kept = [row.content for row in repaired.rows if row.role in ("system", "user")]
    assert kept == [row.content for row in rows if row.role in ("system", "user")]
    assert repaired.removed_rows == len(rows) - len(repaired.rows)


def test_a_system_row_does_not_end_a_run():
    rows = [user("q"), called("a", "b"), result("a"), Row("system", "note"), result("b")]
    assert repair(rows).rows == tuple(rows)


def test_ids_used_again_in_later_rows_get_the_next_free_name():
    rows = [called("x"), result("x"), called("x_2"), result("x_2"), called("x"), result("x")]
    renamed = unique_call_ids(rows)
    assert [row.tool_call_id for row in renamed if row.role == "tool"] == ["x", "x_2", "x_3"]
    assert renamed[:4] == rows[:4]


def test_the_same_id_twice_in_one_row_is_answered_once():
    rows = [user("q"), called("x", "x"), result("x"), result("x")]
    assert repair(rows).rows == (user("q"), called("x"), result("x"))


def test_calls_without_an_id_are_named_and_matched_in_order():
    rows = [user("q"), called("", ""), result(None, "one"), result("", "two")]
    fixed = repair(rows).rows
    assert [call.id for call in fixed[1].tool_calls] == ["call", "call_2"]
    assert [(row.tool_call_id, row.content) for row in fixed[2:]] == [("call", "one"), ("call_2", "two")]


def test_a_result_without_an_id_and_without_an_open_call_goes():
    rows = [user("q"), called("a"), result("a"), result(None)]
    assert strip_orphaned_tool_calls_from_assistants(rows).rows == rows[:3]


def test_a_stripped_row_keeps_its_text_and_an_empty_one_goes():
    rows = [user("q"), called("a", text="thinking aloud"), called("b")]
    assert repair(rows).rows == (user("q"), said("thinking aloud"))
    assert repair([user("q"), said("  ")]).rows == (user("q"),)


def test_removed_ids_are_named_once_in_order():
    swept = remove_orphaned_tool_messages(
        [result("z"), called("a"), called("b", "c"), result("b"), result("z")]
    )
    assert swept.orphan_tool_call_ids == ("z", "b", "c")
    assert swept.removed == 4


def test_the_row_cache_keeps_whole_turns_and_no_tool_rows_when_told_so():
    cache = RowCache(4, keep_tool_context_turns=0)
    cache.append_turn("ann", [user("q1"), called("a", text="hm"), result("a"), said("r1")])
    assert cache.rows("ann") == [user("q1"), said("hm"), said("r1")]
    cache.append_turn("ann", [user("q2"), said("r2")])
    assert cache.rows("ann") == [user("q2"), said("r2")]
    whole = RowCache()
    assert whole.max_rows == 50
    big = [user("q"), *(said(str(index)) for index in range(60))]
    whole.append_turn("bob", big)
    assert whole.rows("bob") == big
    whole.forget("bob")
    assert whole.rows("bob") == []


@EXAMPLES
@given(flat_rows(), st.integers(1, 20))
def test_the_row_cache_never_stores_a_tool_row_without_kept_context(rows, size):
    cache = RowCache(size, keep_tool_context_turns=0)
    if rows:
        cache.append_turn("ann", rows)
    assert all(row.role != "tool" and not row.tool_calls for row in cache.rows("ann")[1:])
