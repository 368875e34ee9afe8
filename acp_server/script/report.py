"""An outcome as text for a person. Pure."""

import json

from acp_server.script.match import ABSENT
from acp_server.script.play import Outcome
from acp_server.script.variables import Literal

_VALUE = 300
_FRAME = 1000
_STDERR_LINES = 12


def outcome_text(outcome: Outcome) -> str:
    """`ok NAME (N steps, 0.12 s)`, or the first difference and what led to it."""
    if outcome.failure is None:
        return f"ok {outcome.script.name} ({_count(outcome)}, {outcome.seconds:.2f} s)"
    lines = [f"FAIL {_where(outcome)}: {outcome.failure.problem}"]
    if outcome.note:
        lines.append(f"  after the note: {outcome.note}")
    if outcome.step is not None:
        lines.append(f"  step      {shorten(outcome.step.source, _FRAME)}")
    lines += _difference(outcome)
    lines += _block("last lines (-> sent, <- received):", outcome.last)
    stderr = outcome.stderr.rstrip("\n").split("\n") if outcome.stderr.strip() else []
    lines += _block("the agent's stderr, its end:", stderr[-_STDERR_LINES:])
    return "\n".join(lines)


def closing(passed: int, failed: int) -> str:
    """The last line of a run."""
    return f"{passed} passed, {failed} failed"


def shorten(text: str, limit: int) -> str:
    """At most about `limit` characters, the middle left out."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]} … {text[-(limit // 2) :]}"


def compact(value: object, limit: int) -> str:
    """A value as one line of JSON, shortened; `nothing` for a key that is not there."""
    if value is ABSENT:
        return "nothing"
    return shorten(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain), limit)


def _plain(value: object) -> object:
    return value.value if isinstance(value, Literal) else str(value)


def _difference(outcome: Outcome) -> list[str]:
    assert outcome.failure is not None
    difference, lines = outcome.failure.difference, []
    if difference is not None:
        expected = "nothing more" if difference.expected is ABSENT else compact(difference.expected, _VALUE)
        lines.append(f"  differs at {difference.path or 'the top'}")
        lines.append(f"  expected  {expected}")
        lines.append(f"  came      {compact(difference.came, _VALUE)}")
    if outcome.failure.frame is not None:
        lines.append(f"  in        {compact(outcome.failure.frame, _FRAME)}")
    return lines


def _block(title: str, lines: object) -> list[str]:
    kept = [f"    {line}" for line in lines] if isinstance(lines, list | tuple) else []
    return [f"  {title}", *kept] if kept else []


def _where(outcome: Outcome) -> str:
    return f"{outcome.script.name}:{outcome.step.line}" if outcome.step else outcome.script.name


def _count(outcome: Outcome) -> str:
    number = len(outcome.script.steps)
    return f"{number} step" if number == 1 else f"{number} steps"
