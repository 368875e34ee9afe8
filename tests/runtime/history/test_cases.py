"""Troubles people had with other agents, by their ids, through the live history.

Where a case wants something the product does otherwise, the docstring says what and why.
"""

from dataclasses import replace

import pytest

from runtime.history.live.history import History
from runtime.history.request.compose import Composed, compose
from runtime.history.rows.collapse import truncate_tool_result
from runtime.history.rows.estimate import estimate_history_tokens
from runtime.history.rows.notice import BREADCRUMB_TEXT, TrimNotice
from runtime.history.rows.pairs import pairs_ok
from runtime.history.rows.structured import (
    entries_from_rows,
    rows_from_entries,
    trim_conversation_to_recent_turns,
)
from runtime.history.rows.trim import trim_to_recent_turn_count
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row
from tests.runtime.history.case_data import cases, expand, flat, given, live
from tests.runtime.history.helpers import user

ROUTE = Route("p", "m", 200_000)
TOOLS = {"read_file", "shell", "list_dir", "import_image", "ls"}


def ask(history: History, **settings: object) -> Composed:
    profile = replace(Profile(), **settings)  # type: ignore[arg-type]
    composed = compose(history, profile, ROUTE, callable_tools=TOOLS)
    assert pairs_ok(composed.rows())
    assert not composed.healed
    return composed


def results(composed: Composed) -> list[str | None]:
    return [row.tool_call_id for row in composed.rows() if row.role == "tool"]


def markers(composed: Composed) -> int:
    return sum(row.content == BREADCRUMB_TEXT for row in composed.rows())


def test_b001():
    """A collapsed turn is its prompt and its reply: the three results go together."""
    composed = ask(live("B001"), keep_tool_context_turns=0)
    assert results(composed) == []
    assert [row.content for row in composed.rows()][1:3] == [
        "Read the three config files.",
        "Read all three.",
    ]
    assert results(ask(live("B001"), keep_tool_context_turns=1)) == ["a1", "a2", "a3"]


def test_b002():
    composed = ask(live("B002"), max_history_messages=20)
    (trim,) = composed.trims
    assert (trim.kept_turns, trim.dropped_turns) == (20, 30)
    assert composed.rows()[1].content == "ask 31"
    rows = trim_to_recent_turn_count(flat("B002"), 20)
    assert (rows.kept_turns, rows.dropped_turns, rows.history[0].content) == (20, 30, "ask 31")


def test_b003():
    composed = ask(live("B003"), max_history_messages=2)
    assert composed.history.turn_count == 2
    assert [call.id for row in composed.rows() for call in row.tool_calls] == ["x3"]
    assert results(composed) == ["x3"]


def test_b004():
    """Results are tool rows whatever a provider makes of them, so two turns are two turns."""
    composed = ask(live("B004"), max_history_messages=5)
    assert (composed.history.turn_count, composed.trims) == (2, ())
    assert results(composed) == [f"p{index}" for index in range(1, 8)]


def test_b006():
    """A result is cut once, when it is recorded: text only, with the amount; later turns collapse."""
    rows = given("B006")
    text = expand(next(value["text"] for value in rows if value["role"] == "tool"))
    cut = truncate_tool_result(text, 2_000)
    assert len(cut.text.encode()) < 2_600
    assert f"[... {cut.elided_bytes} characters truncated ...]" in cut.text
    history = live("B006")
    assert results(ask(history, keep_tool_context_turns=1)) == ["L1"]
    assert results(ask(history, keep_tool_context_turns=0)) == []


def test_b008():
    history = live("B008")
    composed = ask(history, max_context_tokens=2_000)
    assert [row.role for row in composed.rows()][:2] == ["system", "user"]
    assert composed.trims == ()
    (warning,) = composed.warnings
    assert "2000" in warning.description
    assert "max_context_tokens" in warning.description
    assert ask(composed.history, max_context_tokens=2_000).warnings == ()


def test_b009():
    composed = ask(live("B009"), max_history_messages=1)
    assert (composed.history.turn_count, len(composed.rows()), composed.trims) == (1, 4, ())


def test_b010():
    composed = ask(live("B010"), max_history_messages=2)
    assert composed.history.turn_count == 2
    assert composed.rows()[1] == Row("user", "two")


def test_b011():
    history = live("B011")
    composed = ask(history, max_context_tokens=100_000, max_history_messages=50)
    assert composed.rows() == flat("B011")
    assert composed.trims == ()


def test_b014():
    history = live("B014")
    assert history.turn_count == 2
    composed = ask(history, max_history_messages=1)
    (trim,) = composed.trims
    assert (trim.dropped_turns, trim.kept_turns, trim.dropped_messages) == (1, 1, 4)
    rows = flat("B014")
    structured = trim_conversation_to_recent_turns(entries_from_rows(rows), 1)
    provider = trim_to_recent_turn_count(rows, 1)
    assert rows_from_entries(structured.history) == provider.history
    assert (structured.dropped_turns, structured.dropped_messages) == (1, 4)


def test_b015():
    history = live("B015")
    notices: list[TrimNotice] = []
    seen = []
    for _ in range(3):
        composed = ask(history, max_history_messages=1)
        notices += composed.trims
        seen.append(markers(composed))
        history = composed.history
    assert [(trim.dropped_turns, trim.dropped_messages) for trim in notices] == [(1, 2)]
    assert seen == [1, 1, 1]


def test_b043():
    """The breadcrumb says that turns are gone; it quotes nothing of them."""
    composed = ask(live("B043"), max_history_messages=2)
    assert composed.rows()[1].content == BREADCRUMB_TEXT
    assert (markers(composed), composed.trims[0].dropped_turns) == (1, 2)


def test_b045():
    """A collapsed turn keeps its reply, not a shortened result; within the kept turns all is whole."""
    whole = ask(live("B045"), keep_tool_context_turns=1)
    assert any("port = 8613" in row.content for row in whole.rows())
    short = ask(live("B045"), keep_tool_context_turns=0)
    assert "8613." in [row.content for row in short.rows()]
    assert results(short) == []


def test_b049():
    composed = ask(live("B049"), max_context_tokens=150)
    for trim in composed.trims:
        assert trim.tokens is not None
        assert trim.tokens.after < trim.tokens.before
        assert trim.tokens.after_source == trim.tokens.before_source
    assert composed.history.turn_count == 2


def test_b061():
    """The breadcrumb is a user row by rule; an adapter joins neighbours where a provider asks for it."""
    composed = ask(live("B061"), max_history_messages=1)
    assert [row.role for row in composed.rows()] == ["system", "user", "user"]
    assert composed.rows()[-1].content == "three"


def test_b063():
    history = live("B063")
    for _ in range(5):
        composed = ask(history, max_history_messages=1)
        history = composed.history
        history.close_turn()
        history.open_turn("next", user("more"))
    system = [row.content for row in composed.rows() if row.role == "system"]
    assert system == ["Never push to main."]


def test_b064():
    history = live("B064")
    history.close_turn()
    history.open_turn("next", user("go on"))
    composed = ask(history, max_history_messages=2)
    assert composed.rows()[-1].role == "user"
    assert results(composed) == ["i1"]


@pytest.mark.parametrize("sample", range(7))
def test_b071(sample):
    text, low, high = cases()["B071"]["input"]["samples"][sample]
    content = expand(text)
    tokens = estimate_history_tokens([Row("user", content)])
    assert low <= tokens <= high
    assert estimate_history_tokens([Row("user", content * 2)]) > tokens


def test_b072():
    composed = ask(live("B072"))
    assert 500 <= composed.message_tokens <= 6_000
    assert (composed.trims, composed.images) == ((), 1)
