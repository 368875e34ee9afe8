"""Plain rows: what the three trimmers, collapse and truncate promise for any of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.history.rows import token_counter as counters
from runtime.history.rows.boundaries import boundaries, opens_turn, prefix_length
from runtime.history.rows.calls_in_text import PromptCall, prompt_mode_calls
from runtime.history.rows.collapse import collapse_tool_context, truncate_tool_result
from runtime.history.rows.estimate import estimate_history_tokens, is_loadable, price_row
from runtime.history.rows.structured import (
    entries_from_rows,
    rows_from_entries,
    trim_conversation_to_recent_turns,
)
from runtime.history.rows.token_counter import BYTE_CLASSES, HEURISTIC, token_counter
from runtime.history.rows.trim import trim_to_recent_turn_count, trim_to_recent_turns, trim_to_reported_usage
from runtime.values.errors import ConfigError
from runtime.values.profiles import HistoryPruning, Profile, profile_warnings
from runtime.values.rows import Image, Row
from tests.runtime.history.strategies import EXAMPLES, flat_rows


def check_suffix(rows, result, crumb):
    prefix = prefix_length(rows, crumb)
    assert list(result.history[:prefix]) == rows[:prefix]
    kept = list(result.history[prefix:])
    assert kept == rows[len(rows) - len(kept) :]
    assert result.dropped_messages == len(rows) - len(result.history)
    if result.trimmed:
        assert opens_turn(kept[0])
        assert result.dropped_turns >= 1
    else:
        assert result.history is rows
    assert result.dropped_turns + result.kept_turns == len(boundaries(rows, prefix))
    assert result.kept_turns >= bool(boundaries(rows, prefix))


@EXAMPLES
@given(flat_rows(), st.integers(0, 4000), st.booleans())
def test_a_budget_trim_keeps_a_suffix_of_whole_turns(rows, budget, crumb):
    result = trim_to_recent_turns(rows, budget, crumb_present=crumb)
    check_suffix(rows, result, crumb)
    assert result.tokens_before == estimate_history_tokens(rows)
    assert result.tokens_after == estimate_history_tokens(result.history)
    if budget and result.kept_turns > 1:
        assert result.tokens_after <= budget
    if result.trimmed and result.dropped_turns > 1:
        one_less = trim_to_recent_turn_count(rows, result.kept_turns + 1, crumb_present=crumb)
        assert estimate_history_tokens(one_less.history) > budget


@EXAMPLES
@given(flat_rows(), st.integers(0, 6), st.booleans())
def test_both_faces_agree_on_a_count_trim(rows, turns, crumb):
    result = trim_to_recent_turn_count(rows, turns, crumb_present=crumb)
    check_suffix(rows, result, crumb)
    entries = entries_from_rows(rows)
    structured = trim_conversation_to_recent_turns(entries, turns, crumb_present=crumb)
    assert (structured.dropped_turns, structured.kept_turns) == (result.dropped_turns, result.kept_turns)
    systems = [row for row in rows if row.role == "system"]
    after = rows_from_entries(structured.history)
    assert [row for row in after if row.role == "system"] == systems


@EXAMPLES
@given(flat_rows(), st.integers(0, 3000), st.integers(0, 9000), st.integers(0, 3000), st.integers(0, 200))
def test_a_reported_trim_keeps_a_suffix(rows, budget, reported, measured, schemas):
    result = trim_to_reported_usage(
        rows,
        budget,
        reported_input_tokens=reported,
        measured_estimate=measured,
        tool_schema_tokens=schemas,
    )
    check_suffix(rows, result, crumb=False)
    assert result.tokens_before == reported


@EXAMPLES
@given(flat_rows())
def test_entries_become_the_same_rows_again(rows):
    again = rows_from_entries(entries_from_rows(rows))
    assert [(row.role, row.content, row.tool_calls, row.tool_call_id) for row in again] == [
        (row.role, row.content, row.tool_calls, row.tool_call_id) for row in rows
    ]


@EXAMPLES
@given(flat_rows(), st.integers(0, 4))
def test_collapse_is_idempotent_and_keeps_every_prompt(rows, keep):
    once = collapse_tool_context(rows, keep, {"shell"})
    assert collapse_tool_context(once, keep, {"shell"}) == once
    prefix = prefix_length(rows, crumb_present=False)
    prompts = [rows[index] for index in boundaries(rows, prefix)]
    kept = [row for row in once if row in prompts]
    assert len(kept) >= min(len(prompts), 1)


@EXAMPLES
@given(st.text(max_size=300), st.integers(-1, 120))
def test_a_cut_result_keeps_both_ends_and_counts_what_is_gone(text, limit):
    cut = truncate_tool_result(text, limit)
    size = len(text.encode())
    if limit <= 0 or size <= limit:
        assert (cut.text, cut.elided_bytes) == (text, 0)
        return
    line = f"\n\n[... {cut.elided_bytes} characters truncated ...]\n\n"
    head, tail = cut.text.split(line, 1)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + cut.elided_bytes == size
    assert len(head.encode()) + len(tail.encode()) <= limit


def test_a_marker_that_is_cut_at_both_ends_goes_whole():
    text = "a" * 8 + "[IMAGE:" + "p" * 40 + "]" + "z" * 8
    assert (
        truncate_tool_result(text, 30).text == f"{'a' * 8}\n\n[... 48 characters truncated ...]\n\n{'z' * 8}"
    )


@pytest.mark.parametrize(
    ("target", "loadable"),
    [
        ("\\\\?\\C:\\a.png", False),
        ("\\\\.\\pipe\\a", False),
        ("\\\\nas\\share", True),
        ("\\\\nas", False),
        ("C:a.png", False),
        ("c:\\a.png", True),
        ("a/b.png", False),
        ("  \n ", False),
    ],
)
def test_which_targets_are_loadable(target, loadable):
    assert is_loadable(target) is loadable


def test_a_prompts_pictures_cost_a_flat_price_in_any_turn():
    picture = Row("user", "", images=(Image("image/png", "A" * 9_000), Image("image/png", uri="/a.png")))
    assert price_row(picture, current=False).tokens == price_row(picture, current=True).tokens == 3204


def test_lone_surrogates_are_priced_and_cut_without_an_error():
    text = "\ud800" * 50
    assert price_row(Row("tool", text), current=True).tokens > 4
    assert truncate_tool_result(text, 20).elided_bytes > 0
    assert BYTE_CLASSES.count(text) > 0


def test_prompt_mode_calls_are_read_and_other_text_is_not():
    text = 'a <tool_call>{"name":"ls","arguments":{"p":"ä"}}</tool_call><tool_call>{"name":1}</tool_call>'
    assert prompt_mode_calls(text) == [PromptCall("ls", '{"p":"ä"}')]
    assert prompt_mode_calls('{"name":"ls"}') == []
    assert prompt_mode_calls("<tool_call>not json</tool_call>") == []


def test_counters_are_chosen_by_name():
    assert token_counter("heuristic") is HEURISTIC
    assert token_counter("byte-classes") is BYTE_CLASSES
    with pytest.raises(ConfigError, match="token_counter"):
        token_counter("nonsense")


def test_byte_classes_see_more_tokens_in_data_than_the_plain_rule():
    for text in ('{"id":123,"x":[4,5,6]},' * 40, "2031-01-01 12:00:01,234 INFO 10.0.0.1\n" * 20):
        assert BYTE_CLASSES.count(text) > 1.2 * HEURISTIC.count(text)
    assert BYTE_CLASSES.count("QUJDREVGR0hJSktM" * 40) > 2 * HEURISTIC.count("QUJDREVGR0hJSktM" * 40)
    prose = "The quick brown fox jumps over the lazy dog. " * 20
    assert 0.7 < BYTE_CLASSES.count(prose) / HEURISTIC.count(prose) < 1.1


def test_a_real_vocabulary_counts_with_the_extra_and_says_so_without(monkeypatch):
    pytest.importorskip("bpe_openai")
    counter = token_counter("o200k_base")
    assert counter.count("hello world") == 2
    assert counter.count("<|endoftext|>\ud800") > 1

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(counters, "import_module", missing)
    with pytest.raises(ConfigError, match=r"wholeturn\[tokens\]"):
        token_counter("cl100k_base")


def test_old_pruning_keys_get_one_warning_that_names_the_new_one():
    assert profile_warnings(Profile()) == ()
    old = Profile(history_pruning=HistoryPruning(keep_recent=4, collapse_tool_results=True))
    (warning,) = profile_warnings(old)
    assert "keep_tool_context_turns" in warning
