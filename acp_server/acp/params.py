"""What a client sent, made into checked values, or into an error that shows no received value.

Knows the shapes of ACP but neither sessions nor turns. What only a prompt needs is loaded with the first
one: a new session does not wait for the models of content blocks.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from runtime.values.errors import InvalidParams
from schemas.acp.prompt_and_options import PromptParams

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)


class Prompt(NamedTuple):
    """A prompt, checked. text: the user row; '' if there are no blocks, which is a turn with nothing to ask.

    blocks: each content block in wire form for the transcript, without what the protocol does not know.
    """

    session_id: str
    text: str
    blocks: tuple[Mapping[str, object], ...]


def parse(model: type[M], params: object) -> M:
    """Check params (None counts as {}) against a model. Raises InvalidParams naming field and reason."""
    received = {} if params is None else params
    if not isinstance(received, dict):
        raise InvalidParams("Invalid params: must be an object")
    try:
        return model.model_validate(received)
    except ValidationError as error:
        raise InvalidParams(f"Invalid params: {_first_problem(error)}") from None


def parse_prompt(params: object) -> Prompt:
    """Params of `session/prompt` as a `Prompt`. Raises InvalidParams, also for kinds not on offer."""
    parsed = parse(PromptParams, params)
    # Loaded here: what content blocks are made of is not needed before the first prompt.
    from acp_server.acp.prompt_text import prompt_text

    text = prompt_text(parsed.prompt)
    blocks = tuple(
        block.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
        for block in parsed.prompt
    )
    return Prompt(parsed.session_id, text, blocks)


# ---------------------------------------------------------------- errors

_REASONS: Mapping[str, str] = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_unicode": "is not valid Unicode text",
    "int_type": "must be an integer",
    "bool_type": "must be true or false",
    "tuple_type": "must be an array",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "greater_than_equal": "is too small",
    "less_than_equal": "is too large",
    "union_tag_not_found": "has no type",
}
_TAGGED_LISTS = ("prompt", "mcpServers")


def _first_problem(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{_place(problems[0]['loc'])} {_reason(problems[0])}{more}"


def _reason(problem: "ErrorDetails") -> str:
    # The library's own sentences quote the received value; only facts of the model are shown.
    context = problem.get("ctx", {})
    match problem["type"]:
        case "value_error":
            return str(context["error"])
        case "union_tag_invalid":
            return f"must have one of the types {context['expected_tags']}"
        case kind:
            return _REASONS.get(kind, "is not valid")


def _place(loc: Iterable[int | str]) -> str:
    """`mcpServers[0].env[1].name`. Marks of the library for the member of a union are left out."""
    steps = list(loc)
    text = ""
    for index, step in enumerate(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        elif not (step[:1].isupper() or _names_a_kind(steps, index)):
            text += f".{step}" if text else step
    return text


def _names_a_kind(steps: list[int | str], index: int) -> bool:
    return index == 2 and isinstance(steps[1], int) and steps[0] in _TAGGED_LISTS
