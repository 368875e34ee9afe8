"""Small builders for history tests."""

from collections.abc import Sequence

from runtime.history.live.history import History
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.rows import Row, ToolCall, ToolSpec

SHELL = ToolSpec("shell", "run a command", '{"type":"object"}')


def user(text: str) -> Row:
    return Row("user", text, origin="user")


def said(text: str) -> Row:
    return Row("assistant", text)


def called(*ids: str, name: str = "shell", text: str = "") -> Row:
    return Row("assistant", text, tuple(ToolCall(one, name, "{}") for one in ids))


def result(call_id: str | None, text: str = "out") -> Row:
    return Row("tool", text, tool_call_id=call_id)


def add_turn(history: History, turn_id: str, rows: Sequence[Row]) -> None:
    history.open_turn(turn_id, rows[0])
    history.append(rows[1:])
    history.close_turn()


def plain_history(turns: int, size: int = 100, *, system: Sequence[str] = ("sys",)) -> History:
    """`turns` turns of a prompt and a reply, `size` characters each, the last one closed."""
    history = History(system)
    for index in range(turns):
        add_turn(history, f"t{index}", [user(f"q{index:04}" + "x" * size), said(f"a{index:04}" + "y" * size)])
    return history


def refusal(detail: str, status: int | None = 400, code: str = "") -> ProviderError:
    return ProviderError(
        "The provider refused.",
        kind=ProviderErrorKind.BAD_REQUEST,
        retryable=False,
        status=status,
        code=code,
        detail=detail,
    )
