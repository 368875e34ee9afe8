"""Patterns: each matcher where it agrees and where it differs, captures, variables, and the checks."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_server.programs.script import match, patterns
from acp_server.programs.script.match import ABSENT, Difference, compare
from acp_server.programs.script.patterns import check_pattern
from acp_server.programs.script.steps import filled, filled_pattern

AGREE = [
    ({"a": 1}, {"a": 1, "b": 2}),
    ({}, {"a": 1}),
    ({"a": {"b": [1, {"c": None}]}}, {"a": {"b": [1, {"c": None, "d": 1}], "e": 0}}),
    ({"$exact": {"a": {"b": 1}}}, {"a": {"b": 1}}),
    ({"$exact": {"a": "$any", "z": {"$absent": True}}}, {"a": [1]}),
    ({"a": {"$absent": True}}, {"b": 1}),
    ({"a": {"$absent": False}}, {"a": None}),
    ("$any", None),
    ("$string", ""),
    ("$int", 0),
    ("$number", 1.5),
    ("$number", 1),
    ("$bool", False),
    ("$null", None),
    ("$object", {}),
    ("$array", []),
    ("$$any", "$any"),
    ({"$regex": "^s-[0-9]+$"}, "s-12"),
    ({"$contains": "ell"}, "hello"),
    ({"$contains": {"id": 2}}, [{"id": 1}, {"id": 2, "x": 0}]),
    ({"$len": 2}, [1, 2]),
    ({"$len": {"$gte": 3}}, "漢字テ"),
    ({"$len": 0}, {}),
    ({"$gte": 2, "$lt": 3}, 2),
    ({"$gt": 1, "$lte": 3.5}, 3.5),
    ({"$not": "$string"}, 3),
    ({"$one_of": [1, "$string"]}, "x"),
    ({"$all": [{"$contains": "a"}, {"$contains": "b"}]}, "ab"),
    ([1, "$any"], [1, 2]),
    ([], []),
    ([1, {"$rest": True}], [1]),
    ([1, {"$rest": True}], [1, "x", None]),
    ([{"$rest": "$int"}], [1, 2, 3]),
    ("text $any", "text $any"),
]


@pytest.mark.parametrize(("pattern", "value"), AGREE)
def test_agrees(pattern, value):
    check_pattern(pattern)
    assert compare(pattern, value) == {}


@pytest.mark.parametrize(
    ("pattern", "value", "path", "expected", "came"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ".a.b", 1, 2),
        ({"a": 1}, {}, ".a", 1, ABSENT),
        ({"a": {"b": 1}}, {}, ".a", {"b": 1}, ABSENT),
        ({"a": 1}, [1], "", {"a": 1}, [1]),
        ({"a": 1}, {"a": True}, ".a", 1, True),
        ({"a": 1}, {"a": 1.0}, ".a", 1, 1.0),
        ({"a": "1"}, {"a": 1}, ".a", "1", 1),
        ({"a": None}, {}, ".a", None, ABSENT),
        ({"a": "$any"}, {}, ".a", "$any", ABSENT),
        ({"$exact": {"a": {"b": 1}}}, {"a": {"b": 1, "c": 2}}, ".a.c", ABSENT, 2),
        ({"a": {"$absent": True}}, {"a": None}, ".a", {"$absent": True}, None),
        ({"a": {"$absent": False}}, {}, ".a", {"$absent": False}, ABSENT),
        ("$string", 1, "", "$string", 1),
        ("$int", True, "", "$int", True),
        ("$int", 1.0, "", "$int", 1.0),
        ("$number", "1", "", "$number", "1"),
        ("$bool", 0, "", "$bool", 0),
        ("$null", False, "", "$null", False),
        ({"$regex": "^b"}, "ab", "", {"$regex": "^b"}, "ab"),
        ({"$regex": "1"}, 1, "", {"$regex": "1"}, 1),
        ({"$contains": "z"}, "abc", "", {"$contains": "z"}, "abc"),
        ({"$contains": 1}, [2], "", {"$contains": 1}, [2]),
        ({"$contains": "a"}, {"a": 1}, "", {"$contains": "a"}, {"a": 1}),
        ({"$len": 2}, [1], ".$len", 2, 1),
        ({"$len": 2}, 12, "", {"$len": 2}, 12),
        ({"$gte": 2}, 1, "", {"$gte": 2}, 1),
        ({"$gt": 2}, 2, "", {"$gt": 2}, 2),
        ({"$lte": 2}, 3, "", {"$lte": 2}, 3),
        ({"$lt": 2}, "1", "", {"$lt": 2}, "1"),
        ({"$gte": 0}, True, "", {"$gte": 0}, True),
        ({"$not": "$int"}, 3, "", {"$not": "$int"}, 3),
        ({"$one_of": [1, 2]}, 3, "", {"$one_of": [1, 2]}, 3),
        ({"$all": ["$string", {"$contains": "b"}]}, "a", "", {"$contains": "b"}, "a"),
        ([1, 2], [1], "[1]", 2, ABSENT),
        ([1], [1, 2], "[1]", ABSENT, 2),
        ([1, {"$rest": "$int"}], [1, 2, "x"], "[2]", "$int", "x"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ".a[0].b", 1, 2),
        ({"a": {"$capture": "X"}}, {}, ".a", "$capture:X", ABSENT),
    ],
)
def test_first_difference(pattern, value, path, expected, came):
    check_pattern(pattern)
    found = compare(pattern, value)
    assert isinstance(found, Difference)
    assert (found.path, found.expected, found.came) == (path, expected, came)
    assert type(found.came) is type(came)


@pytest.mark.parametrize(
    ("pattern", "value", "captured"),
    [
        ({"id": "$capture:ID"}, {"id": 7}, {"ID": 7}),
        ({"id": {"$capture": "ID", "$regex": "^s"}}, {"id": "s1"}, {"ID": "s1"}),
        ({"a": "$capture:A", "b": ["$capture:B"]}, {"a": {"x": 1}, "b": [None]}, {"A": {"x": 1}, "B": None}),
        ({"$contains": {"id": "$capture:ID", "ok": True}}, [{"id": 1}, {"id": 2, "ok": True}], {"ID": 2}),
        ({"$one_of": [{"a": "$capture:X", "b": 1}, {"a": "$capture:Y"}]}, {"a": 1}, {"Y": 1}),
        ({"$not": {"a": "$capture:X"}}, {"b": 1}, {}),
    ],
)
def test_captures(pattern, value, captured):
    assert compare(pattern, value) == captured


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("$strnig", "is no matcher"),
        ("$capture:lower", "is no matcher"),
        ({"a": [{"$regexp": "x"}]}, "is no matcher"),
        ({"$regex": "("}, r"\$regex: "),
        ({"$regex": 1}, r"\$regex cannot take 1"),
        ({"$capture": "no"}, "cannot take"),
        ({"$absent": 1}, "cannot take"),
        ({"$gte": "x"}, "cannot take"),
        ({"$gte": True}, "cannot take"),
        ({"$one_of": []}, "takes a list"),
        ({"$all": "x"}, "takes a list"),
        ([{"$rest": True}, 1], "last element"),
        ([{"$rest": True, "$len": 1}], "last element"),
        ({"$rest": True}, "is no matcher"),
        ({"$not": "$nope"}, "is no matcher"),
    ],
)
def test_impossible_patterns(pattern, said):
    with pytest.raises(ValueError, match=said):
        check_pattern(pattern)


def test_both_tables_hold_the_same_matchers():
    assert set(patterns.MATCHERS) - {"$repeat"} == set(match.OPERATORS)


VARIABLES = {"ID": 7, "NAME": "a.b", "ODD": {"$any": 1}, "WORD": "$any"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("$ID", 7),
        ({"a": ["$ODD"]}, {"a": [{"$any": 1}]}),
        ("${NAME}/${ID}", "a.b/7"),
        ("$$ID", "$ID"),
        ("$lower", "$lower"),
        ("$/cancel_request", "$/cancel_request"),
        ("costs $ID now", "costs $ID now"),
        ({"$repeat": ["${ID}-", 3]}, "7-7-7-"),
        ({"x": {"$repeat": ["a", 0]}}, {"x": ""}),
    ],
)
def test_messages_are_filled(message, expected):
    assert filled(message, VARIABLES) == expected


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("$ID", 7, "7"),
        ("$WORD", "$any", "x"),
        ("$ODD", {"$any": 1}, {"x": 1}),
        ({"$regex": "^${NAME}$"}, "a.b", "axb"),
        ({"$contains": "${NAME}"}, "xa.bx", "axb"),
        ({"$gte": "$ID"}, 8, 6),
        ({"$repeat": ["ab", 2]}, "abab", "ab"),
        ({"$len": "$ID"}, "1234567", "1"),
    ],
)
def test_patterns_are_filled(pattern, yes, no):
    check_pattern(pattern)
    made = filled_pattern(pattern, VARIABLES)
    assert compare(made, yes) == {}
    assert isinstance(compare(made, no), Difference)


@pytest.mark.parametrize("message", ["$NONE", "x${NONE}", {"$regex": "${NONE}"}, {"a": ["$NONE"]}])
def test_variable_without_value(message):
    for fill in (filled, filled_pattern):
        with pytest.raises(ValueError, match="NONE has no value here; those that have: ID, NAME"):
            fill(message, VARIABLES)


@pytest.mark.parametrize("repeated", ["x", ["a"], ["a", -1], ["a", 1 << 40], [1, 2]])
def test_impossible_repeat(repeated):
    with pytest.raises(ValueError, match="repeat is"):
        filled({"$repeat": repeated}, {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(JSON, JSON)
def test_exact_is_equality_of_json(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (compare({"$exact": one}, other) == {}) == same
    assert compare(one, one) == {}
