"""The base of all wire and file models: frozen, camelCase outside, snake_case inside."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class WireModel(BaseModel):
    """A model of something that crosses a border in camelCase. Unknown keys are ignored, as ACP asks."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        defer_build=True,
    )


class FileModel(BaseModel):
    """A model of a file that people write, in snake_case. Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
