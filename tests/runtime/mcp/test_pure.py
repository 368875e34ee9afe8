"""Names, schemas, the choice among too many tools, results as text, settings of a session."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.mcp.connection_errors import TAIL, Notes
from runtime.mcp.remote_tool import HIDDEN, one_line, tool_name, without
from runtime.mcp.resources import MOST_CHARACTERS, contents, outcome
from runtime.mcp.settings import McpSettings, ServerSettings, Tuning
from runtime.mcp.tool import parameters_text
from runtime.mcp.tools_offered import Priced, Room, choose

FITS = re.compile(r"[A-Za-z0-9_-]{1,64}")


def test_a_plain_name_stays_readable():
    assert tool_name("git-hub", "create_issue") == "mcp__git-hub__create_issue"


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_names_fit_and_differ(one, other):
    names = tool_name(*one), tool_name(*other)
    assert all(FITS.fullmatch(name) for name in names)
    assert (names[0] == names[1]) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a__b", "c"), ("a", "b__c")),
        (("a_", "b"), ("a", "_b")),
        (("a b", "c"), ("a_b", "c")),
        (("a", "b" * 80), ("a", "b" * 81)),
        (("a" * 80, "b"), ("a" * 81, "b")),
        (("", "x"), ("_", "x")),
    ],
)
def test_names_that_look_alike_differ(one, other):
    assert tool_name(*one) != tool_name(*other)
    assert FITS.fullmatch(tool_name(*one))


SCHEMAS = [
    ({}, {"type": "object", "properties": {}}),
    ({"type": "string", "enum": ["a"]}, {"type": "object", "properties": {}}),
    (
        {"$schema": "x", "title": "T", "type": "object", "properties": {"a": {}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
    ),
    (
        {"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}, 5]},
        {"type": "object", "properties": {"a": {}, "b": {}}},
    ),
    (
        {"allOf": [{"properties": {"a": {}}, "required": ["a"]}], "properties": {"b": {}}},
        {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]},
    ),
    (
        {"properties": {"$filter": {}, "ok": {}}, "required": ["$filter", "ok", 7]},
        {"type": "object", "properties": {"ok": {}}, "required": ["ok"]},
    ),
    ({"type": "object", "properties": [1], "required": "a"}, {"type": "object", "properties": {}}),
    (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"anyOf": [{}]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"anyOf": [{}]}}},
    ),
]


@pytest.mark.parametrize(("schema", "sent"), SCHEMAS)
def test_schemas_become_what_providers_take(schema, sent):
    assert json.loads(parameters_text(schema)) == sent


def test_a_schema_without_end_is_left_out():
    deep: dict[str, object] = {"properties": {"a": {}}}
    for _ in range(300):
        deep = {"properties": {"a": deep}}
    assert json.loads(parameters_text(deep)) == {"type": "object", "properties": {}}


def offer(**counts):
    return {name: [Priced(f"{name}{n}", 10) for n in range(count)] for name, count in counts.items()}


def test_a_large_server_takes_what_small_ones_leave():
    chosen = choose(offer(big=1000, small=3, middle=20), Room(60, 10_000))
    assert {name: len(tools) for name, tools in chosen.items()} == {"big": 37, "small": 3, "middle": 20}
    assert list(chosen) == ["big", "small", "middle"]
    assert chosen["big"][:2] == ("big0", "big1")


def test_equal_servers_share_alike_and_dear_tools_are_passed_over():
    chosen = choose(offer(a=50, b=50), Room(100, 300))
    assert [len(tools) for tools in chosen.values()] == [15, 15]
    dear = {"x": [Priced("dear", 5000), Priced("cheap", 5)]}
    assert choose(dear, Room(10, 100)) == {"x": ("cheap",)}
    assert choose({}, Room(1, 1)) == {}


@given(st.dictionaries(st.text(), st.lists(st.integers(0, 50), max_size=20), max_size=5), st.integers(0, 30))
def test_the_choice_never_passes_the_room(costs, most):
    offered = {name: [Priced((name, n), cost) for n, cost in enumerate(each)] for name, each in costs.items()}
    chosen = choose(offered, Room(most, 100))
    taken = [tool for tools in chosen.values() for tool in tools]
    assert len(taken) <= most
    assert sum(costs[name][n] for name, n in taken) <= 100


def content(*blocks, **more):
    return {"content": list(blocks), **more}


TEXT = {"type": "text", "text": "hello"}
RESULTS = [
    (content(TEXT, TEXT), "hello\nhello"),
    (content(TEXT, structuredContent={"a": 1}), "hello"),
    (content(structuredContent={"a": 1}), '{"a":1}'),
    (content(), "(the tool gave no output)"),
    ({}, "(the tool gave no output)"),
    (content("text", 5, None), "(the tool gave no output)"),
    (
        content({"type": "image", "mimeType": "image/png", "data": "AAAA"}),
        "[image/png, about 3 bytes; it cannot be shown to you here]",
    ),
    (
        content({"type": "audio", "data": "AAAA"}),
        "[audio of an unnamed type, about 3 bytes; it cannot be shown to you here]",
    ),
    (
        content({"type": "resource_link", "uri": "x://y", "name": "n", "description": "d"}),
        "[resource x://y: n; d]",
    ),
    (content({"type": "resource", "resource": {"uri": "x://y", "text": "inside"}}), "[x://y]\ninside"),
    (
        content({"type": "resource", "resource": {"uri": "x://y", "blob": "AAAA"}}),
        "[x://y: bytes, about 3 bytes, not text]",
    ),
    (content({"type": "hologram"}), "[content of a kind that is not known here: hologram]"),
    (content({"type": ["text"]}), "[content of a kind that is not known here: ['text']]"),
]


@pytest.mark.parametrize(("result", "text"), RESULTS)
def test_results_as_text(result, text):
    assert (outcome(result).text, outcome(result).failed) == (text, False)


def test_a_failed_result_and_a_very_long_one():
    assert outcome(content(TEXT, isError=True)).failed
    text = outcome(content({"type": "text", "text": "x" * (MOST_CHARACTERS + 5)})).text
    assert text.endswith("\n[... 5 more characters were not taken in]")


def test_contents_of_a_resource():
    assert contents({"contents": [{"uri": "a://b", "text": "t"}]}) == "[a://b]\nt"
    assert contents({}) == "(the resource is empty)"


def test_one_line_and_secrets():
    assert one_line("a\n\tb\x1b[31m\u202e c" + "d" * 300, 12) == "a b [31m cd…"
    assert without("key=abcdefgh and 1 more", ["abcdefgh", "1", ""]) == f"key={HIDDEN} and 1 more"


def test_notes_tell_the_last_line_and_no_secret():
    notes = Notes("s", ("hunter2-hunter2",))
    notes.heard(b"first\nbad token hunter2-hunter2\n\n")
    notes.garbage = "Hello hunter2-hunter2"
    told = notes.told("it failed")
    assert told == f'it failed; it said "bad token {HIDDEN}"; it wrote "Hello {HIDDEN}", which is no message'


def test_half_a_secret_is_not_told():
    notes = Notes("s", ("hunter2-hunter2",))
    notes.heard(b"x" * TAIL + b"hunter2-hunter2 " + b"y" * (TAIL - 10) + b"\nend")
    assert notes.told("it failed") == 'it failed; it said "end"'


def test_a_sessions_servers():
    settings = McpSettings(
        servers=(ServerSettings("mine", command="a"), ServerSettings("both", command="b")),
        tuning={"both": Tuning(tools=("x",), call_timeout=9), "off": Tuning(enabled=False)},
    )
    named = [ServerSettings(name, command="c") for name in ("both", "off", "twice", "twice", "twice-2")]
    found = {server.name: server for server in settings.for_session(tuple(named))}
    assert list(found) == ["both", "twice", "twice-2", "twice-2-2", "mine"]
    assert (found["both"].command, found["both"].tools, found["both"].call_timeout) == ("c", ("x",), 9)


def test_no_text_of_settings_shows_a_secret():
    server = ServerSettings(
        "s", args=("--key=SECRET",), env={"A": "SECRET"}, url="http://u:SECRET@h", headers={"B": "SECRET"}
    )
    assert "SECRET" not in repr(server)
