"""A reader of Emacs Lisp, as far as a configuration needs it: symbols, strings, quotes and lists."""

import re

TOKEN = re.compile(r""";[^\n]*|"(?:\\.|[^"\\])*"|[()']|[^\s()'";]+""")

Form = str | list["Form"]


def read(text: str) -> list[Form]:
    """All forms of a text: lists, and words as they are written. Raises ValueError when one is not closed."""
    stack: list[list[Form]] = [[]]
    for word in TOKEN.findall(text):
        if word == "(":
            stack.append([])
        elif word == ")":
            if len(stack) < 2:
                raise ValueError("closed too often")
            done = stack.pop()
            stack[-1].append(done)
        elif word != "'" and not word.startswith(";"):
            stack[-1].append(word)
    if len(stack) > 1:
        raise ValueError("not closed")
    return stack[0]


def keywords(form: list[Form]) -> dict[str, Form]:
    """The keyword arguments of a call: after the function's name, by pairs."""
    return {str(key): value for key, value in zip(form[1::2], form[2::2], strict=True)}


def call_of(forms: Form, name: str) -> list[Form]:
    """The first call of a function anywhere inside. Raises LookupError."""
    if isinstance(forms, list):
        if forms and forms[0] == name:
            return forms
        for inner in forms:
            try:
                return call_of(inner, name)
            except LookupError:
                continue
    raise LookupError(name)
