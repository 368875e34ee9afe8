"""The scripted provider: which reply is played, what it refuses, and how a bad script is named."""

import pytest
import trio

from runtime.providers.scripted.provider import ScriptedProvider, broken_pair, create, request_size
from runtime.providers.scripted.script import ScriptProblem, parse_script
from runtime.providers.scripted.script_file import load_script
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ConfigError, ProviderError, ProviderErrorKind
from runtime.values.model import CallPart, ModelRequest, Part, Segment, StopPart, TextPart, UsagePart
from runtime.values.rows import Image, Row, ToolCall, ToolSpec


def playing(value: object, **more) -> ScriptedProvider:
    return ScriptedProvider(parse_script(value), **more)


def asking(*rows: Row | str, tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    made = tuple(Row("user", row) if isinstance(row, str) else row for row in rows)
    return ModelRequest("m", (Segment(made),), tools)


async def play(provider: ScriptedProvider, *rows: Row | str) -> list[Part]:
    async with provider.stream(asking(*rows or ("hi",))) as batches:
        return [part async for batch in batches for part in batch]


async def text(provider: ScriptedProvider, *rows: Row | str) -> str:
    return "".join(part.text for part in await play(provider, *rows) if isinstance(part, TextPart))


async def refusal(provider: ScriptedProvider, *rows: Row | str) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await play(provider, *rows)
    return caught.value


async def test_in_order_then_a_clear_error():
    provider = playing([{"text": "one"}, {"text": "two"}])
    assert [await text(provider), await text(provider)] == ["one", "two"]
    error = await refusal(provider)
    assert "no reply left for request 3 (2 in all)" in str(error)
    assert not error.retryable


async def test_when_and_repeat_and_loop():
    script = {
        "replies": [{"text": "sun", "when": "weather"}, {"text": "first", "repeat": 2}, {"text": "rest"}],
        "loop": True,
    }
    provider = playing(script)
    asked = ["hi", "the weather?", "weather", "x", "again", "weather"]
    assert [await text(provider, row) for row in asked] == ["first", "sun", "first", "rest", "first", "sun"]


async def test_repeat_for_ever():
    provider = playing([{"text": "a", "repeat": True}])
    assert [await text(provider) for _ in range(5)] == ["a"] * 5


async def test_loop_does_not_help_where_nothing_fits():
    error = await refusal(playing({"replies": [{"text": "a", "when": "weather"}], "loop": True}), "hi")
    assert error.kind is ProviderErrorKind.BAD_REQUEST


async def test_when_looks_at_the_last_user_row():
    provider = playing([{"text": "old", "when": "first"}, {"text": "new", "when": "second"}])
    rows = (
        Row("user", "first"),
        Row("assistant", "", (ToolCall("c", "f", "{}"),)),
        Row("tool", "first", tool_call_id="c"),
        Row("user", "second"),
    )
    assert await text(provider, *rows) == "new"


async def test_echo():
    provider = playing({"echo": "{n}/{turn}: {last}", "replies": [{"text": "a"}]})
    rows = [Row("user", "x"), Row("assistant", "y"), Row("user", "[SOP: z]", origin="runtime")]
    assert await text(provider) == "a"
    assert await text(provider, *rows, Row("user", "{n}" + "long" * 99)) == "2/2: {n}" + "long" * 49 + "l"


async def test_parts_of_a_call():
    provider = playing(
        [{"calls": [{"name": "f", "arguments": {"ä": [1]}}, {"name": "g", "arguments": "{bad"}]}]
    )
    parts = await play(provider)
    assert [part.call for part in parts if isinstance(part, CallPart)] == [
        ToolCall("call_1_1", "f", '{"ä":[1]}'),
        ToolCall("call_1_2", "g", "{bad"),
    ]
    assert parts[-1] == StopPart("tool_calls")


async def test_usage_is_stated_or_estimated():
    provider = playing([{"text": "12345678"}, {"text": "x", "usage": {"input": 7, "output": 3, "cached": 2}}])
    assert UsagePart(5, 2) in await play(provider, "abcd")
    assert UsagePart(7, 3, 2) in await play(provider)


async def test_delays(autojump_clock):
    provider = playing([{"text": ["a", "b", "c"], "delay": 10, "chunk_delay": 2}])
    times = []
    async with provider.stream(asking("hi")) as batches:
        times += [trio.current_time() async for _ in batches]
    assert times == [10, 12, 14, 14]


async def test_faults():
    provider = playing(
        [
            {"error": {"status": 429, "code": "rate_limit_exceeded", "message": "slow", "retry_after": 3}},
            {"error": {"kind": "unreachable"}},
            {"error": {}},
        ]
    )
    errors = [await refusal(provider) for _ in range(3)]
    assert [(error.kind.value, error.status, error.retry_after) for error in errors] == [
        ("rate_limit", 429, 3),
        ("unreachable", None, None),
        ("server_error", 500, None),
    ]
    assert (errors[0].code, errors[0].detail) == ("rate_limit_exceeded", "slow")


async def test_a_fault_after_text_comes_in_the_middle():
    got: list[Part] = []
    with pytest.raises(ProviderError):  # noqa: PT012 - what came before the error is the point
        async with playing([{"text": ["a", "b"], "error": {"status": 500}}]).stream(asking("hi")) as batches:
            async for batch in batches:
                got += batch
    assert got == [TextPart("a"), TextPart("b")]


async def test_overflow_names_both_sizes():
    provider = playing({"replies": [{"text": "a", "repeat": True}], "limit_tokens": 100})
    assert await text(provider, "x" * 384) == "a"
    error = await refusal(provider, "x" * 385)
    assert (error.kind, error.status, error.code) == (
        ProviderErrorKind.BAD_REQUEST,
        400,
        "context_length_exceeded",
    )
    assert "100 tokens" in error.detail
    assert "101 tokens" in error.detail


CALL = Row("assistant", "", (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")))
A, B = Row("tool", "r", tool_call_id="a"), Row("tool", "r", tool_call_id="b")
USER = Row("user", "u")
PAIRS = [
    ((USER, CALL, A, B, USER), ""),
    ((USER, CALL, B, A), ""),
    ((USER, CALL, A), "call without result: b"),
    ((USER, CALL, A, USER, B), "call without result: b"),
    ((USER, CALL, A, CALL, B), "call without result: b"),
    ((USER, A), "result without call: a"),
    ((USER, CALL, A, B, B), "result without call: b"),
    ((USER, CALL, Row("tool", "r"), A, B), "result without call: None"),
    ((CALL, Row("system", "s"), A, B), "call without result: a"),
    ((Row("assistant", "", (ToolCall("a", "f", ""), ToolCall("a", "f", ""))), A, A), "two calls"),
]


@pytest.mark.parametrize(("rows", "problem"), PAIRS)
async def test_pairs(rows, problem):
    assert broken_pair(rows).startswith(problem)
    assert bool(broken_pair(rows)) == bool(problem)
    if problem:
        provider = playing([{"text": "a"}])
        assert (await refusal(provider, *rows)).status == 400
        assert await text(provider) == "a", "a refused request takes no reply"


def test_size():
    tool = ToolSpec("name", "text", "{}{}")
    row = Row("user", "ä" * 4, images=(Image("image/png", "A" * 9999),))
    assert request_size(asking(row, tools=(tool,))) == (2 + 4 + 1600) + (3 + 4)


async def test_requests_are_kept_on_request():
    provider = playing([{"text": "a", "repeat": True}], keep_requests=2)
    for row in "xyz":
        await play(provider, row)
    assert [request.rows()[0].content for request in provider.requests] == ["y", "z"]
    forgetful = playing([{"text": "a"}])
    await play(forgetful)
    assert forgetful.requests == []


BAD = [
    ("just text", "must be a table"),
    ({}, "neither replies nor echo"),
    ({"replys": []}, 'replys is no key here; did you mean "replies"'),
    ({"replies": {"a": 1}}, "replies must be a list"),
    ([{"txt": "a"}], r'replies\[0\]\.txt is no key here; did you mean "text"'),
    ([{"text": 4}], r"replies\[0\]\.text must be text or a list"),
    ([{"text": ["a", 4]}], r"replies\[0\]\.text"),
    ([{"calls": [{"name": "f"}, {"arguments": {}}]}], r"replies\[0\]\.calls\[1\]\.name is missing"),
    ([{"calls": [{"name": "f", "arguments": 3}]}], r"calls\[0\]\.arguments must be a table or a string"),
    ([{"stop": "done"}], "must be one of end, length, refusal"),
    ([{"delay": -1}], "delay must be a number"),
    ([{"delay": True}], "delay must be a number"),
    ([{"repeat": 0}], "repeat must be true or a whole number"),
    ([{"drop": "yes"}], "drop must be true or false"),
    ([{"error": {"status": 200}}], "status must be an HTTP error status"),
    ([{"error": {"kind": "servererror"}}], 'did you mean "server_error"'),
    ([{"usage": {"in": 1}}], r"usage\.in is no key here"),
    ({"echo": "a", "limit_tokens": "b"}, "limit_tokens must be a number"),
]


@pytest.mark.parametrize(("value", "problem"), BAD)
def test_bad_scripts(value, problem):
    with pytest.raises(ScriptProblem, match=problem):
        parse_script(value)


FILES = {
    "a.yaml": (
        "replies:\n  - text: a\n  - text: b\n    stp: end\n",
        "line 4: replies[1].stp is no key here; did you",
    ),
    "list.yaml": ("- text: a\n- drop: maybe\n", "line 2: replies[1].drop must be"),
    "b.json": ('{\n\t"replies": [\n\t\t{"text": "a", "delay": "x"}]}', "line 3: replies[0].delay must be"),
    "c.json": ('{\n"replies": [,]}', "line 2, column"),
    "d.yaml": ("replies: [\n  {text: a}\n", "line 3"),
    "e.yaml": ("", "must be a table"),
    "f.yaml": ("a\x00b", "characters that YAML does not permit"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files_are_named_with_the_line(tmp_path, name):
    content, problem = FILES[name]
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_script(path)
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"- text: \xe4")
    for path in (tmp_path / "none.yaml", tmp_path, tmp_path / "latin.yaml"):
        with pytest.raises(ConfigError, match=path.name):
            load_script(path)


@pytest.mark.parametrize("options", [{}, {"script": ""}, {"script": 3}, {"scrip": "a"}])
def test_settings_without_a_script(options):
    with pytest.raises(ConfigError, match=r"providers\.s\.scrip"):
        create(ProviderSettings("s", "scripted", options=options))


async def test_the_same_script_in_both_forms(tmp_path):
    (tmp_path / "a.json").write_text('{"replies":[{"text":["a","b"],"calls":[{"name":"f"}]}]}')
    (tmp_path / "a.yaml").write_text("replies:\n- text: [a, b]\n  calls:\n  - name: f\n")
    assert load_script(tmp_path / "a.json") == load_script(tmp_path / "a.yaml")
