"""Fixtures read: every kind of step, and every mistake by its line."""

import signal

import pytest

from acp_server.programs.script import steps
from acp_server.programs.script.parse import ScriptError, parse
from acp_server.programs.script.steps import Answer, Awaited


def read(*lines):
    return [step.action for step in parse("\n".join(lines), "f.jsonl", "/").steps]


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ('{"send": {"id": 1}}', steps.Send({"id": 1})),
        ('{"raw": "x\\n"}', steps.SendText("x\n")),
        ('{"hex": "ff 0a"}', steps.SendBytes(b"\xff\n")),
        ('{"expect": {"id": 1}}', steps.Expect(Awaited({"id": 1}))),
        ('{"expect": "$any", "timeout": 2, "answer": {}}', steps.Expect(Awaited("$any", Answer({})), 2.0)),
        (
            '{"until": {}, "answer_error": {"code": 1}}',
            steps.Until(Awaited({}, Answer({"code": 1}, is_error=True))),
        ),
        (
            '{"any_order": [{"id": 1}, {"expect": {"id": 2}, "answer": 3}, {"optional": {"id": 4}}],'
            ' "timeout": 1}',
            steps.AnyOrder(
                (
                    Awaited({"id": 1}),
                    Awaited({"id": 2}, Answer(3)),
                    Awaited({"id": 4}, required=False),
                ),
                1.0,
            ),
        ),
        ('{"optional": {"id": 1}}', steps.Optional(Awaited({"id": 1}, required=False))),
        ('{"ignore": {"a": 1}, "answer": {}}', steps.Ignore(Awaited({"a": 1}, Answer({}), required=False))),
        ('{"ignore": null}', steps.Ignore(None)),
        ('{"none": "$any"}', steps.Nothing("$any", 0.5)),
        ('{"none": "$any", "for": 1}', steps.Nothing("$any", 1.0)),
        ('{"text": "x", "session": "$S"}', steps.Text("x", "$S")),
        ('{"close": true}', steps.Close()),
        ('{"kill": "KILL"}', steps.Kill(signal.SIGKILL)),
        ('{"restart": true, "note": "why"}', steps.Restart()),
        ('{"exit": -9, "timeout": 3}', steps.Exit(-9, 3.0)),
        ('{"set": {"A_1": [1]}}', steps.Set({"A_1": [1]})),
        ('{"env": {"lower": "1"}}', steps.Env({"lower": "1"})),
        ('{"write": "a/b.txt", "content": "x"}', steps.Write("a/b.txt", "x")),
        ('{"note": "hello"}', steps.Note("hello")),
    ],
)
def test_steps(line, action):
    assert read(line) == [action]


def test_comments_blank_lines_and_crlf():
    text = '\ufeff# one\r\n\r\n  // two\r\n  {"note": "a"}\r\n{"note": "b"}'
    script = parse(text, "f.jsonl", "/")
    assert [(step.line, step.action) for step in script.steps] == [(4, steps.Note("a")), (5, steps.Note("b"))]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "a step is a JSON object"),
        ("{}", "exactly one of these keys: send, raw, .* this one has 0"),
        ('{"send": {}, "expect": {}}', "this one has 2"),
        ('{"sned": {}}', "this one has 0"),
        ('{"send": {}, "timeout": 1}', r"send takes no 'timeout' beside it \(only note\)"),
        ('{"expect": {}, "timeot": 1}', "expect takes no 'timeot'"),
        ('{"expect": {}, "timeout": 0}', "timeout is a number of seconds above 0"),
        ('{"expect": {}, "timeout": true}', "timeout is a number"),
        ('{"expect": {}, "timeout": "1"}', "timeout is a number"),
        ('{"expect": {}, "answer": 1, "answer_error": 2}', "exclude each other"),
        ('{"expect": "$nope"}', "is no matcher"),
        ('{"any_order": []}', "any_order is a list"),
        ('{"any_order": {"a": 1}}', "any_order is a list"),
        ('{"any_order": [{"expect": {}, "answer": 1, "answer_error": 2}]}', "exclude each other"),
        ('{"any_order": ["$nope"]}', "is no matcher"),
        ('{"raw": 1}', "raw is text"),
        ('{"hex": "f"}', "hex is bytes"),
        ('{"hex": 1}', "hex is"),
        ('{"close": false}', "close is true"),
        ('{"restart": 1}', "restart is true"),
        ('{"kill": "9"}', "kill is a signal's name"),
        ('{"kill": "_DFL"}', "kill is a signal's name"),
        ('{"set": {"lower": 1}}', "a variable's name is in capitals"),
        ('{"set": [1]}', "set is an object"),
        ('{"env": 1}', "env is an object"),
        ('{"write": "../x"}', "below .CWD"),
        ('{"write": "/x"}', "below .CWD"),
        ('{"note": 1}', "note is a string"),
    ],
)
def test_mistakes_name_file_and_line(line, said):
    with pytest.raises(ScriptError, match=f"^f.jsonl:3: .*{said}"):
        read("# comment", '{"note": "fine"}', line)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment"])
def test_a_fixture_without_steps(text):
    with pytest.raises(ScriptError, match="holds no step"):
        read(text)
