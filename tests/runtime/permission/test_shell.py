"""Command lines taken apart: what is understood, and that all else is said to be unclear."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.permission.command_line import MAX_LENGTH, Line, Word, read_line


def commands(line: str) -> list[list[str]]:
    found = read_line(line)
    assert found.unclear == ""
    return [[word.text for word in command] for command in found.commands]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("git status", [["git", "status"]]),
        ("  git\tstatus  ", [["git", "status"]]),
        ("a; b && c || d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a\n\nb;\nc &&\n d\n", [["a"], ["b"], ["c"], ["d"]]),
        ("a;", [["a"]]),
        ("a &", [["a"]]),
        ("g\"i\"'t' 'a  b' \"c 'd' e\"", [["git", "a  b", "c 'd' e"]]),
        ("a '' \"\"", [["a", "", ""]]),
        ('a "\\$x \\\\ \\" \\n"', [["a", '$x \\ " \\n']]),
        ("a \\; \\$x b\\ c", [["a", ";", "$x", "b c"]]),
        ("a 'x\ny'", [["a", "x\ny"]]),
        ("a 'x;y|z'", [["a", "x;y|z"]]),
        ("a b#c HEAD^ x=y a~b", [["a", "b#c", "HEAD^", "x=y", "a~b"]]),
        ("a >/dev/null 2>&1", [["a"]]),
        ("a 2> /dev/null < /dev/null >&2 b", [["a", "b"]]),
        ("a 2>/dev/null|b", [["a"], ["b"]]),
        ("a2>/dev/null", [["a2"]]),
        ("a '2'>/dev/null", [["a", "2"]]),
        ("é ß", [["é", "ß"]]),
    ],
)
def test_read(line, found):
    assert commands(line) == found


@pytest.mark.parametrize(
    "line", ["a > f", "a >> f", "a >| f", "a 2> f", "a > 'f'", "a >f >/dev/null", "x; > f"]
)
def test_redirections_into_files_are_writes(line):
    assert read_line(line).writes == ("f",)


def test_a_pattern_behind_a_plain_beginning_is_open():
    assert read_line("ls src/*.py a?c [ab]".partition(" [")[0]) == Line(
        ((Word("ls"), Word("src/*.py", True), Word("a?c", True)),)
    )


@pytest.mark.parametrize(
    "line",
    [
        *("", " ", "\n", ";", "a;;b", "; a", "& a", "a && ", "a |", "a || || b", "a & & b", "a\n&& b"),
        *(
            "(a)",
            "{ a; }",
            "a $(b)",
            "a `b`",
            "a $b",
            'a "$b"',
            'a "`b`"',
            "a ${b}",
            "a $'b'",
            "a <(b)",
            "a >(b)",
        ),
        *(
            "a <<E\nE",
            "a <<< b",
            "a < f",
            "a <> f",
            "a &> f",
            "a >& f",
            "a |& b",
            "a >",
            "a > > f",
            "a > *",
            "a 10> f",
        ),
        *(
            "X=1",
            "X=1 a",
            "X+=1 a",
            "x[0]=1",
            "if a; then b; fi",
            "for i in a; do b; done",
            "! a",
            "[[ a ]]",
            "time a",
        ),
        *(
            "a # b",
            "# a",
            "a {b,c}",
            "a !b",
            'a "!b"',
            "*",
            "?x",
            "a *",
            "a -*",
            "~/a",
            "a =b",
            "=a",
            "^a",
            "%1",
            "-a",
        ),
        *("a '", 'a "', "a \\", "a \\\nb", "\\a", "a \\n", "a 'b\\'", "a 'b\\\\c'", "'' a", "f() { a; }"),
        *(
            "a\rb",
            "a\x00b",
            "a\x0bb",
            "a\x7fb",
            "a\u00a0b",
            "a\u2028b",
            "a\u200bb",
            "a '\u202eb'",
            "a \ud800",
        ),
        "a" * (MAX_LENGTH + 1),
    ],
)
def test_unclear(line):
    assert read_line(line).unclear != ""


@given(st.text(alphabet="ab \t\n;&|<>()\"'\\$`*?[]~#=%!{}^-/.\r\u00a0\x00", max_size=30))
def test_reading_never_fails_and_gives_words_or_a_reason(line):
    found = read_line(line)
    assert bool(found.unclear) != bool(found.commands)
    assert all(command and command[0].text for command in found.commands)
