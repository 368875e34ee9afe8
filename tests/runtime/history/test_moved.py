"""A live history taken to another model: nothing lost, priced anew, foreign reasoning left behind."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.history.live.history import History, restore_history
from runtime.history.request.compose import compose
from runtime.history.request.trims import moved
from runtime.history.rows.estimate import IMAGE_TOKENS
from runtime.history.rows.token_counter import BYTE_CLASSES, HEURISTIC, SightlessCounter, token_counter
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Image, Row, ToolCall

BLIND = SightlessCounter(HEURISTIC)
ROUTE = Route("p", "m", 100_000)
PICTURE = Image("image/png", "QUJD" * 1000)


def turn(number: int, *, picture: bool = False) -> list[Row]:
    return [
        Row("user", f"question {number}", images=(PICTURE,) if picture else ()),
        Row("assistant", "", (ToolCall("same", "look", '{"n":1}'),), reasoning='[{"type":"thinking"}]'),
        Row("tool", f"result {number}", tool_call_id="same"),
        Row("assistant", f"answer {number}"),
    ]


def history(turns: int, *, counter=HEURISTIC, picture: bool = False) -> History:
    rows = ((f"t{number}", turn(number, picture=picture)) for number in range(turns))
    return restore_history(rows, system=["You are a test."], counter=counter)


@given(st.integers(1, 8), st.integers(0, 5), st.booleans())
def test_as_if_it_had_always_been_of_that_model(turns, dropped, picture):
    before = history(turns, picture=picture).without_oldest(dropped)
    other = history(turns, counter=BYTE_CLASSES, picture=picture).without_oldest(dropped)
    there = moved(before, BYTE_CLASSES)
    assert there.tokens == moved(other, BYTE_CLASSES).tokens
    sent, wanted = compose(there, Profile(), ROUTE), compose(other, Profile(), ROUTE)
    assert [(row.role, row.content, row.tool_calls) for row in sent.rows()] == [
        (row.role, row.content, row.tool_calls) for row in wanted.rows()
    ]
    assert (there.crumb_present, there.turn_count) == (before.crumb_present, before.turn_count)
    assert before.shared.counter is HEURISTIC


def test_the_running_turn_goes_on_without_reasoning_of_another():
    before = history(2)
    before.open_turn("new", Row("user", "now"))
    before.append(turn(9)[1:3])
    assert any(row.reasoning for row in compose(before, Profile(), ROUTE).rows())
    there = moved(before, HEURISTIC)
    assert not any(row.reasoning for row in compose(there, Profile(), ROUTE).rows())
    there.append([Row("assistant", "done")])
    there.close_turn()
    there.open_turn("next", Row("user", "more"))
    assert there.turn_count == 4
    ids = [call.id for row in compose(there, Profile(), ROUTE).rows() for call in row.tool_calls]
    assert len(set(ids)) == len(ids)


def test_segments_that_stay_the_same_keep_their_bytes():
    before = history(3)
    first = compose(before, Profile(keep_tool_context_turns=9), ROUTE)
    for segment in first.segments:
        segment.encoded["codec"] = b"made"
    again = compose(moved(before, BYTE_CLASSES), Profile(keep_tool_context_turns=9), ROUTE)
    kept = [segment for segment in again.segments if segment.encoded]
    assert len(kept) >= 2


def test_a_picture_costs_a_line_where_nobody_sees_it():
    before = history(1, picture=True)
    saved = before.tokens - moved(before, BLIND).tokens
    assert IMAGE_TOKENS - 100 < saved < IMAGE_TOKENS
    assert compose(moved(before, BLIND), Profile(), ROUTE).images == 0
    assert moved(moved(before, BLIND), HEURISTIC).tokens == moved(before, HEURISTIC).tokens


def test_the_name_of_such_a_counter_finds_it_again():
    assert token_counter(BLIND.name) == BLIND
