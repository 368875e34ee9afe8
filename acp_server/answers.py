"""What a client answers to our requests, made into values. Pure; what cannot be read is the careful value.

The form that a question is shown as stands beside the reading of its answer.
"""

from collections.abc import Mapping, Sequence

from runtime.errors import ToolError
from runtime.ports import ExitStatus, PermissionOption, PermissionOutcome, Question, TerminalOutput

Facts = Mapping[object, object]


def content(result: object) -> str | None:
    """The text of a file; None when there is none."""
    found = _facts(result).get("content")
    return found if isinstance(found, str) else None


def terminal_id(result: object) -> str:
    """The id of a new terminal. Raises ToolError."""
    found = _facts(result).get("terminalId")
    if not isinstance(found, str) or not found:
        raise ToolError("the editor started no terminal")
    return found


def terminal_output(result: object) -> TerminalOutput:
    """What a terminal shows."""
    facts = _facts(result)
    text, status = facts.get("output"), facts.get("exitStatus")
    return TerminalOutput(
        text if isinstance(text, str) else "",
        facts.get("truncated") is True,
        exit_status(status) if isinstance(status, Mapping) else None,
    )


def exit_status(result: object) -> ExitStatus:
    """How a process ended, as far as it was told."""
    facts = _facts(result)
    code, signal = facts.get("exitCode"), facts.get("signal")
    return ExitStatus(
        code if type(code) is int else None, signal if isinstance(signal, str) and signal else None
    )


def permission_outcome(result: object, options: Sequence[PermissionOption]) -> PermissionOutcome:
    """Which of the options was chosen. Only an exact answer chooses one."""
    outcome = _facts(_facts(result).get("outcome"))
    if outcome.get("outcome") == "cancelled":
        return PermissionOutcome(cancelled=True)
    if outcome.get("outcome") != "selected":
        return PermissionOutcome()
    chosen = outcome.get("optionId")
    return PermissionOutcome(next((option for option in options if option.option_id == chosen), None))


FIELD = "answer"


def form(question: Question) -> dict[str, object]:
    """The schema of a form with one field."""
    field: dict[str, object] = {"type": "string", "title": "Answer"}
    if question.choices:
        field["enum"] = list(question.choices)
    else:
        field["minLength"] = 1
    return {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}


def form_answer(result: object, question: Question) -> str | None:
    """What was answered; None when it was declined, or is nothing that the form allows."""
    facts = _facts(result)
    answer = _facts(facts.get("content")).get(FIELD)
    if facts.get("action") != "accept" or not isinstance(answer, str) or not answer.strip():
        return None
    return answer if not question.choices or answer in question.choices else None


def _facts(value: object) -> Facts:
    return value if isinstance(value, Mapping) else {}
