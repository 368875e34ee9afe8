"""A fixture's text to steps. Pure. Every mistake names its line."""

import binascii
import json
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import PurePath

from acp_server.programs.script import steps
from acp_server.programs.script.patterns import check_pattern
from acp_server.programs.script.steps import Action, Answer, Awaited, Script, Step
from runtime.values.errors import ConfigError

_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_ANSWERS = ("answer", "answer_error")
_DEFAULT_SILENCE = 0.5


class ScriptError(ConfigError):
    """A fixture that cannot be understood; the message begins with file and line."""


def parse(text: str, name: str, folder: str) -> Script:
    """The script of a fixture. Blank lines and lines that begin with # or // are left out."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        source = line.strip().removeprefix("\ufeff")
        if source and not source.startswith(("#", "//")):
            found.append(Step(number, _step(source, f"{name}:{number}"), source))
    if not found:
        raise ScriptError(f"{name}: holds no step")
    return Script(name, folder, tuple(found))


def _step(source: str, where: str) -> Action:
    try:
        body = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise ScriptError(f"{where}: not JSON ({error})") from error
    if not isinstance(body, dict):
        raise ScriptError(f"{where}: a step is a JSON object")
    try:
        return _action(body)
    except ValueError as error:
        raise ScriptError(f"{where}: {error}") from error


def _action(body: Mapping[str, object]) -> Action:
    kinds = [key for key in body if key in _KINDS]
    if len(kinds) > 1 and "note" in kinds:
        kinds.remove("note")
    if len(kinds) != 1:
        known = ", ".join(_KINDS)
        raise ValueError(f"a step has exactly one of these keys: {known}; this one has {len(kinds)}")
    kind = kinds[0]
    build, extras = _KINDS[kind]
    for key in body:
        if key not in (kind, "note", *extras):
            allowed = ", ".join((*extras, "note"))
            raise ValueError(f"{kind} takes no {key!r} beside it (only {allowed})")
    return build(kind, body)


def _send(kind: str, body: Mapping[str, object]) -> Action:
    return steps.Send(body[kind])


def _raw(kind: str, body: Mapping[str, object]) -> Action:
    if not isinstance(body[kind], str | dict):
        raise ValueError('raw is text, or a {"$repeat": [text, times]}')
    return steps.SendText(body[kind])


def _hex(kind: str, body: Mapping[str, object]) -> Action:
    try:
        return steps.SendBytes(bytes.fromhex(_string(body, kind)))
    except (ValueError, binascii.Error) as error:
        raise ValueError("hex is bytes as hexadecimal digits, two each") from error


def _expect(kind: str, body: Mapping[str, object]) -> Action:
    return steps.Expect(_awaited(kind, body), _seconds(body, "timeout"))


def _until(kind: str, body: Mapping[str, object]) -> Action:
    return steps.Until(_awaited(kind, body), _seconds(body, "timeout"))


def _any_order(kind: str, body: Mapping[str, object]) -> Action:
    members = body[kind]
    if not isinstance(members, list) or not members:
        raise ValueError("any_order is a list of patterns, of expect and of optional steps")
    return steps.AnyOrder(tuple(_member(member) for member in members), _seconds(body, "timeout"))


def _member(member: object) -> Awaited:
    if isinstance(member, dict):
        for kind in ("expect", "optional"):
            if kind in member and set(member) <= {kind, *_ANSWERS}:
                return _awaited(kind, member, required=kind == "expect")
    check_pattern(member)
    return Awaited(member)


def _optional(kind: str, body: Mapping[str, object]) -> Action:
    return steps.Optional(_awaited(kind, body, required=False))


def _ignore(kind: str, body: Mapping[str, object]) -> Action:
    return steps.Ignore(None if body[kind] is None else _awaited(kind, body, required=False))


def _none(kind: str, body: Mapping[str, object]) -> Action:
    check_pattern(body[kind])
    return steps.Nothing(body[kind], _seconds(body, "for") or _DEFAULT_SILENCE)


def _text(kind: str, body: Mapping[str, object]) -> Action:
    check_pattern(body[kind])
    return steps.Text(body[kind], body.get("session"))


def _close(kind: str, body: Mapping[str, object]) -> Action:
    _true(body, kind)
    return steps.Close()


def _kill(kind: str, body: Mapping[str, object]) -> Action:
    found = getattr(signal, f"SIG{_string(body, kind)}", None)
    if not isinstance(found, signal.Signals):
        raise ValueError("kill is a signal's name without SIG, such as KILL or TERM")
    return steps.Kill(int(found))


def _restart(kind: str, body: Mapping[str, object]) -> Action:
    _true(body, kind)
    return steps.Restart()


def _exit(kind: str, body: Mapping[str, object]) -> Action:
    check_pattern(body[kind])
    return steps.Exit(body[kind], _seconds(body, "timeout"))


def _set(kind: str, body: Mapping[str, object]) -> Action:
    values = _object(body, kind)
    for name in values:
        if not _NAME.match(name):
            raise ValueError(f"a variable's name is in capitals, such as SESSION, not {name!r}")
    return steps.Set(values)


def _env(kind: str, body: Mapping[str, object]) -> Action:
    return steps.Env(_object(body, kind))


def _write(kind: str, body: Mapping[str, object]) -> Action:
    path = PurePath(_string(body, kind))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError("write takes a path below $CWD")
    return steps.Write(str(path), body.get("content", ""))


def _note(kind: str, body: Mapping[str, object]) -> Action:
    return steps.Note(_string(body, kind))


def _awaited(kind: str, body: Mapping[str, object], *, required: bool = True) -> Awaited:
    check_pattern(body[kind])
    given = [key for key in _ANSWERS if key in body]
    if len(given) > 1:
        raise ValueError("answer and answer_error exclude each other")
    answer = Answer(body[given[0]], given[0] == "answer_error") if given else None
    return Awaited(body[kind], answer, required)


def _seconds(body: Mapping[str, object], key: str) -> float | None:
    value = body.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 86_400:
        raise ValueError(f"{key} is a number of seconds above 0")
    return float(value)


def _string(body: Mapping[str, object], key: str) -> str:
    value = body[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} is a string")
    return value


def _object(body: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = body[key]
    if not isinstance(value, dict):
        raise ValueError(f"{key} is an object of names and values")
    return value


def _true(body: Mapping[str, object], key: str) -> None:
    if body[key] is not True:
        raise ValueError(f"{key} is true or not there")


_Builder = Callable[[str, Mapping[str, object]], Action]
_KINDS: dict[str, tuple[_Builder, tuple[str, ...]]] = {
    "send": (_send, ()),
    "raw": (_raw, ()),
    "hex": (_hex, ()),
    "expect": (_expect, ("timeout", *_ANSWERS)),
    "until": (_until, ("timeout", *_ANSWERS)),
    "any_order": (_any_order, ("timeout",)),
    "optional": (_optional, _ANSWERS),
    "ignore": (_ignore, _ANSWERS),
    "none": (_none, ("for",)),
    "text": (_text, ("session",)),
    "close": (_close, ()),
    "kill": (_kill, ()),
    "restart": (_restart, ()),
    "exit": (_exit, ("timeout",)),
    "set": (_set, ()),
    "env": (_env, ()),
    "write": (_write, ("content",)),
    "note": (_note, ()),
}
