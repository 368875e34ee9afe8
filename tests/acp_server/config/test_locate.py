"""The line finder: every key of a valid text is found on a line that names it."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_server.config.files import line_of, locate
from acp_server.config.layers import leaves

TEXT = '''\
# [not.a.table]
default_agent = "x" # = 2

[agents.default]
provider = "a = b\\n[x]"
"quoted key" = 1
system_prompt = """
provider = "inside"
[agents.fake]
"""
a.b . 'c d' = 3
[providers."local \\"vllm\\""]
headers = { X = "1", "Y Z" = "}" }
list = [
  1, # ]
  "]",
  { deep = 1 },
]
after = \'\'\'it's''\'\'\'
last = -1.5e3
[[points]]
x = 1
[[points]]
x = 2'''

CASES = [
    (("default_agent",), 2),
    (("agents", "default"), 4),
    (("agents", "default", "provider"), 5),
    (("agents", "default", "quoted key"), 6),
    (("agents", "default", "system_prompt"), 7),
    (("agents", "default", "a"), 11),
    (("agents", "default", "a", "b", "c d"), 11),
    (("providers", 'local "vllm"'), 12),
    (("providers", 'local "vllm"', "headers", "X"), 13),
    (("providers", 'local "vllm"', "headers", "Y Z"), 13),
    (("providers", 'local "vllm"', "list"), 14),
    (("providers", 'local "vllm"', "list", "deep"), 17),
    (("providers", 'local "vllm"', "after"), 19),
    (("providers", 'local "vllm"', "last"), 20),
    (("points",), 21),
    (("points", "x"), 22),
]


@pytest.mark.parametrize(("key", "line"), CASES)
def test_line(key, line):
    tomllib.loads(TEXT)
    assert locate(TEXT)[key] == line


def test_text_inside_strings_and_comments_is_no_key():
    found = locate(TEXT)
    assert ("agents", "fake") not in found
    assert ("not",) not in found


def test_line_endings_of_windows():
    assert locate("a = 1\r\n\r\nb = 2\r\n") == {("a",): 1, ("b",): 3}


def test_unknown_key_takes_the_table_around_it():
    assert line_of(locate("\n[a.b]\nc = 1"), ("a", "b", "zzz", "y")) == 2
    assert line_of({}, ("a",)) == 1


@pytest.mark.parametrize(
    "text", ["[", "[a", "a", "a =", "a = [", "a = {", "= 1", '"a', "a = [}", "a = {]", 'a."\\q" = 1', "\x00"]
)
def test_broken_text_ends(text):
    locate(text)


names = st.text(st.characters(codec="utf-8", exclude_characters="\x7f", min_codepoint=32), max_size=8)
values = st.one_of(st.integers(-9, 9).map(str), st.booleans().map(lambda b: str(b).lower()), st.just("'#]}'"))


@settings(max_examples=150)
@given(st.dictionaries(names, st.dictionaries(names, values, min_size=1, max_size=3), max_size=4))
def test_every_key_of_a_valid_text_is_found(document):
    def quote(name):
        return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines: list[str] = []
    where: dict[tuple[str, ...], int] = {}
    for name, section in document.items():
        lines.append(f"[{quote(name)}]")
        for key, value in section.items():
            lines.append(f"{quote(key)} = {value}")
            where[(name, key)] = len(lines)
    text = "\n".join(lines)
    found = locate(text)
    for key, _ in leaves(tomllib.loads(text)):
        assert found[key] == where[key]


@settings(max_examples=150)
@given(st.text(alphabet="ab.=[]{}\"'#\\\n, 1", max_size=60))
def test_any_text_ends_without_raising(text):
    for line in locate(text).values():
        assert 1 <= line <= text.count("\n") + 1
