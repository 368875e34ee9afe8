"""What a script for the scripted provider says: its values and the strict reader. Knows no file.

The keys are described in README.md beside this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from runtime.providers.settings import nearest
from runtime.values.errors import ProviderErrorKind
from runtime.values.model import StopReason, UsagePart

Path = tuple[str | int, ...]
STOPS: Mapping[str, StopReason] = {"end": "end", "length": "length", "refusal": "refusal"}


class ScriptProblem(ValueError):
    """A value that cannot be used. path: keys and indexes down to it."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(f"{dotted(path) or 'the script'} {text}")
        self.path = path


def dotted(path: Path) -> str:
    """`replies[2].calls[0].name`, indexes from 0."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


@dataclass(frozen=True, slots=True)
class ScriptedFault:
    """An error in place of an answer, or of its rest. status None: no HTTP answer at all."""

    status: int | None = 500
    kind: ProviderErrorKind | None = None
    code: str = ""
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call. id '': one is made."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. Seconds for delays; uses: how often it may serve, None for ever."""

    pieces: tuple[str, ...] = ()
    thought: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: UsagePart | None = None
    stop: StopReason | None = None
    delay: float = 0.0
    chunk_delay: float = 0.0
    fault: ScriptedFault | None = None
    drop: bool = False
    hang: bool = False
    when: str = ""
    uses: int | None = 1


@dataclass(frozen=True, slots=True)
class Script:
    """All answers. limit_tokens 0: no limit. echo '': none."""

    replies: tuple[Reply, ...] = ()
    loop: bool = False
    limit_tokens: int = 0
    echo: str = ""


def parse_script(value: object) -> Script:
    """The script in a loaded YAML or JSON document. A list is taken for its `replies`."""
    if isinstance(value, list):
        value = {"replies": value}
    top = _Table(value, ())
    top.only("replies", "loop", "limit_tokens", "echo")
    script = Script(
        replies=tuple(_reply(item) for item in top.tables("replies")),
        loop=top.flag("loop"),
        limit_tokens=int(top.number("limit_tokens", 0)),
        echo=top.text("echo"),
    )
    if not script.replies and not script.echo:
        raise ScriptProblem((), "has neither replies nor echo")
    return script


def _reply(table: "_Table") -> Reply:
    table.only(
        *("text", "thought", "calls", "usage", "stop", "delay", "chunk_delay"),
        *("error", "drop", "hang", "when", "repeat"),
    )
    usage = table.table("usage")
    error = table.table("error")
    stop = table.choice("stop", STOPS)
    return Reply(
        pieces=table.pieces("text"),
        thought=table.text("thought"),
        calls=tuple(_call(item) for item in table.tables("calls")),
        usage=_usage(usage) if usage else None,
        stop=STOPS[stop] if stop else None,
        delay=table.number("delay", 0.0),
        chunk_delay=table.number("chunk_delay", 0.0),
        fault=_fault(error) if error else None,
        drop=table.flag("drop"),
        hang=table.flag("hang"),
        when=table.text("when"),
        uses=table.repeat("repeat"),
    )


def _call(table: "_Table") -> ScriptedCall:
    table.only("name", "arguments", "id")
    name = table.text("name")
    if not name:
        raise ScriptProblem((*table.path, "name"), "is missing")
    return ScriptedCall(name, table.arguments("arguments"), table.text("id"))


def _usage(table: "_Table") -> UsagePart:
    keys = ("input", "output", "cached", "cache_write")
    table.only(*keys)
    return UsagePart(*(int(table.number(key, 0)) for key in keys))


def _fault(table: "_Table") -> ScriptedFault:
    table.only("status", "kind", "code", "message", "retry_after")
    kind = table.choice("kind", [kind.value for kind in ProviderErrorKind])
    status = int(table.number("status", 0)) or (None if kind else 500)
    if status is not None and not 400 <= status <= 599:
        raise ScriptProblem((*table.path, "status"), "must be an HTTP error status, 400 to 599")
    return ScriptedFault(
        status=status,
        kind=ProviderErrorKind(kind) if kind else None,
        code=table.text("code"),
        message=table.text("message"),
        retry_after=table.number("retry_after", 0.0) if table.has("retry_after") else None,
    )


class _Table:
    """A mapping with its place in the document; each getter checks what it gives."""

    def __init__(self, value: object, path: Path) -> None:
        if not isinstance(value, Mapping):
            raise ScriptProblem(path, "must be a table of keys and values")
        self._values: Mapping[object, object] = value
        self.path = path

    def only(self, *known: str) -> None:
        for key in self._values:
            if key not in known:
                hint = nearest(str(key), known)
                raise ScriptProblem(
                    (*self.path, str(key)), f"is no key here{hint} (known: {', '.join(known)})"
                )

    def has(self, key: str) -> bool:
        return self._values.get(key) is not None

    def text(self, key: str) -> str:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, "text (put it in quotes)")
        return value or ""

    def pieces(self, key: str) -> tuple[str, ...]:
        value = self._values.get(key)
        pieces = [value] if isinstance(value, str) else value
        if pieces is None:
            return ()
        if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
            raise self._wrong(key, "text or a list of texts")
        return tuple(piece for piece in pieces if piece)

    def number(self, key: str, default: float) -> float:
        value = self._values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise self._wrong(key, "a number, 0 or more")
        return value

    def flag(self, key: str) -> bool:
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def repeat(self, key: str) -> int | None:
        """Uses: `true` is without end, a number is that many, absent or `false` is one."""
        value = self._values.get(key, False)
        if isinstance(value, bool):
            return None if value else 1
        if not isinstance(value, int) or value < 1:
            raise self._wrong(key, "true or a whole number, 1 or more")
        return value

    def choice(self, key: str, known: Sequence[str] | Mapping[str, StopReason]) -> str:
        value = self.text(key)
        if value and value not in known:
            raise ScriptProblem(
                (*self.path, key), f"must be one of {', '.join(known)}{nearest(value, known)}"
            )
        return value

    def arguments(self, key: str) -> str:
        """A string goes out as it stands, valid or not; a table as compact JSON."""
        value = self._values.get(key, {})
        if isinstance(value, str):
            return value
        if not isinstance(value, Mapping):
            raise self._wrong(key, "a table or a string")
        try:
            return orjson.dumps(value).decode()
        except TypeError:
            raise self._wrong(key, "a table that JSON can hold") from None

    def table(self, key: str) -> "_Table | None":
        value = self._values.get(key)
        return None if value is None else _Table(value, (*self.path, key))

    def tables(self, key: str) -> list["_Table"]:
        value = self._values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return [_Table(item, (*self.path, key, index)) for index, item in enumerate(value)]

    def _wrong(self, key: str, wanted: str) -> ScriptProblem:
        return ScriptProblem((*self.path, key), f"must be {wanted}")
