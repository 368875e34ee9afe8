"""Field types that the ACP models share: lenient for what describes, strict for what acts. Knows no model.

Absolute paths are those of any system; no file system is asked, not even the one this runs on.
"""

import re
from typing import Annotated, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    FailFast,
    Field,
    PlainSerializer,
    Strict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticUseDefault

from schemas.base import is_shallow

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_UNC = re.compile(r"\\\\[^\\/]+[\\/][^\\/]+")


def is_absolute(path: str) -> bool:
    """True for `/x`, `C:\\x`, `C:/x` and `\\\\server\\share`; false for anything with a NUL in it."""
    if "\0" in path:
        return False
    return path.startswith("/") or bool(_DRIVE.match(path) or _UNC.match(path))


T = TypeVar("T")


def _default_on_error(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """The official schema's `x-deserialize-default-on-error`: a bad descriptive value counts as absent."""
    try:
        return handler(value)
    except ValidationError:
        raise PydanticUseDefault from None


def _empty_on_null(value: object) -> object:
    """The official schema's `x-deserialize-default-on-null`: the key must be there, null is an empty list."""
    return () if value is None else value


def _is_offered(value: object) -> bool:
    # A gate is an object or null. `{}` means yes although it is falsy; `true` is not a gate at all.
    return isinstance(value, dict)


def _shallow(value: dict[str, object]) -> dict[str, object]:
    if not is_shallow(value):
        raise ValueError("is nested too deeply")
    return value


def _absolute(value: str) -> str:
    if not is_absolute(value):
        raise ValueError("must be an absolute path")
    return value


Lenient = Annotated[T, WrapValidator(_default_on_error)]
"""A field of type T whose malformed value becomes the field's default. The field must have one."""

NullIsEmpty = Annotated[T, FailFast(), BeforeValidator(_empty_on_null)]
"""A list field that takes null for an empty list. The first bad item ends the check."""

Flag = Annotated[bool, Strict(), WrapValidator(_default_on_error)]
"""An optional boolean capability: anything but true and false is the default."""

Gate = Annotated[
    bool,
    BeforeValidator(_is_offered),
    PlainSerializer(lambda offered: {} if offered else None, return_type=dict[str, object] | None),
]
"""A capability that is offered by the presence of an object. True: it was there, be it empty.

Validates the wire's form only: a Python True is not an object.
"""

AbsolutePath = Annotated[str, AfterValidator(_absolute)]
"""A path in absolute form: POSIX, Windows with a drive, or UNC. Not resolved, not looked up."""

Meta = Annotated[Lenient[Annotated[dict[str, object], AfterValidator(_shallow)] | None], Field(alias="_meta")]
"""The extension object that every ACP type may carry; never a reason to refuse the rest."""
