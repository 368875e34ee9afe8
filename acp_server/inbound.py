"""What a client sent, made into checked values: params, and a prompt's blocks as text for the model.

Knows the shapes of ACP but neither sessions nor turns, and never puts a received value into an error.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from acp_server.file_uri import path_from_uri
from runtime.errors import InvalidParams
from schemas.acp.content import (
    BlobContents,
    ContentBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    TextContents,
)
from schemas.acp.prompt import PromptParams

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Prompt:
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
    blocks = tuple(
        block.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
        for block in parsed.prompt
    )
    return Prompt(parsed.session_id, prompt_text(parsed.prompt), blocks)


def prompt_text(blocks: Sequence[ContentBlock]) -> str:
    """The blocks as one user text, in order. Raises InvalidParams for images and sound.

    Text goes in as it is, a link as a one-line reference, an embedded text in a fence under its URI.
    Two blocks meet as they are if there is white space where they meet, else on a new line.
    """
    text = ""
    for index, block in enumerate(blocks):
        piece = _piece(index, block)
        apart = not text or not piece or text[-1].isspace() or piece[0].isspace()
        text += piece if apart else "\n" + piece
    return text


# ---------------------------------------------------------------- blocks


def _piece(index: int, block: ContentBlock) -> str:
    match block:
        case TextBlock():
            return block.text
        case ResourceLinkBlock():
            return _link(block)
        case ResourceBlock(resource=TextContents() as contents):
            return _fenced(contents)
        case ResourceBlock(resource=BlobContents() as contents):
            return _blob(contents)
        case _:
            # Only what `initialize` offered may arrive, and it offers neither images nor sound.
            raise InvalidParams(f"Invalid params: prompt[{index}]: {block.type} content is not supported")


def _link(block: ResourceLinkBlock) -> str:
    # Tools take paths, so a file's path stands beside the URI, decoded.
    path = path_from_uri(block.uri)
    place = f", file {_one_line(path)}" if path else ""
    return f"[resource: {_one_line(block.title or block.name)}{place}]({_one_line(block.uri)})"


def _fenced(contents: TextContents) -> str:
    runs = re.findall(r"`{3,}", contents.text)
    fence = "`" * max((len(run) + 1 for run in runs), default=3)
    end = "" if contents.text.endswith("\n") else "\n"
    return f"\nContents of {_one_line(contents.uri)}:\n{fence}\n{contents.text}{end}{fence}\n"


def _blob(contents: BlobContents) -> str:
    kind = _one_line(contents.mime_type or "unknown type")
    size = len(contents.blob) * 3 // 4
    return f"\n[binary resource, {kind}, about {size} bytes, contents not shown]({_one_line(contents.uri)})\n"


def _one_line(value: str) -> str:
    """No line break or control character, so that a name cannot pose as a line of the prompt."""
    return " ".join("".join(c if c.isprintable() else " " for c in value).split())


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
