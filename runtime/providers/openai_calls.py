"""Puts the tool calls of a streamed chat completion together from their pieces: pure.

Servers differ in what they leave out. A piece belongs to an open call when its index says so and
nothing speaks against it, or when its id does, or else when it names no call of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from runtime.model import (
    CallPart,
    CallStartPart,
)
from runtime.rows import ToolCall


@dataclass(slots=True)
class _OpenCall:
    slot: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    started: bool = False

    def text(self) -> str:
        return "".join(self.arguments)


class CallAssembler:
    """Feed it the `tool_calls` deltas; take the complete calls at the end. new_id makes missing ids."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, delta: object) -> CallStartPart | None:
        """One element of a `tool_calls` list. Gives a part when a call's name became known."""
        if not isinstance(delta, dict):
            return None
        function = delta.get("function")
        inner = function if isinstance(function, dict) else delta
        name, ident = _text(inner.get("name")), _text(delta.get("id"))
        index = delta.get("index")
        call = self._find(index if isinstance(index, int) else None, ident, name)
        call.id = call.id or ident
        call.name = name if name.startswith(call.name) else call.name
        arguments = _arguments(inner.get("arguments"))
        if arguments:
            call.arguments.append(arguments)
        return self._start(call)

    def _start(self, call: _OpenCall) -> CallStartPart | None:
        if call.started or not call.name:
            return None
        call.started = True
        call.id = call.id or self._new_id()
        return CallStartPart(call.slot, call.id, call.name)

    def _find(self, index: int | None, ident: str, name: str) -> _OpenCall:
        call = self._candidate(index, ident, name)
        if call is None or _is_another(call, ident, name):
            call = _OpenCall(len(self._calls))
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _candidate(self, index: int | None, ident: str, name: str) -> _OpenCall | None:
        if index is not None:
            return self._by_index.get(index)
        if ident:
            same = [call for call in self._calls if call.id == ident]
            if same or name:
                return same[0] if same else None
        return self._calls[-1] if self._calls else None

    def finish(self) -> list[CallPart]:
        """All calls, complete. A call that was never named has name ''."""
        return [
            CallPart(call.slot, ToolCall(call.id or self._new_id(), call.name, call.text() or "{}"))
            for call in self._calls
        ]


def _is_another(call: _OpenCall, ident: str, name: str) -> bool:
    """Whether a piece that came under an open call's index starts a call of its own."""
    if not name or not call.name:
        return False
    if ident and call.id and ident != call.id:
        return True
    if ident and ident == call.id:
        return False
    # No id to tell by: a name after arguments that are complete is the next call's.
    return _is_object(call.text())


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    """The piece as text. Some servers send the whole object in place of a string."""
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode()
