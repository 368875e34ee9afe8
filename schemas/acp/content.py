"""Content blocks: what a prompt is made of. Knows not how a block becomes text for a model."""

from typing import Annotated, Literal

from pydantic import ConfigDict, FailFast, Field, Strict, TypeAdapter

from schemas.acp.fields import Lenient, Meta
from schemas.base import WireModel


class Annotations(WireModel):
    """Hints of how to show a block. priority: 0 to 1 by habit; last_modified: ISO 8601."""

    audience: Lenient[tuple[Literal["user", "assistant"], ...] | None] = None
    last_modified: Lenient[str | None] = None
    priority: Lenient[Annotated[float, Strict()] | None] = None
    meta: Meta = None


class _Block(WireModel):
    annotations: Lenient[Annotations | None] = None
    meta: Meta = None


class TextBlock(_Block):
    """Plain text."""

    type: Literal["text"]
    text: str


class ImageBlock(_Block):
    """An image, base64 in `data`."""

    type: Literal["image"]
    data: str
    mime_type: str
    uri: Lenient[str | None] = None


class AudioBlock(_Block):
    """A sound, base64 in `data`."""

    type: Literal["audio"]
    data: str
    mime_type: str


class ResourceLinkBlock(_Block):
    """A pointer to something the agent may read by itself. size: bytes."""

    type: Literal["resource_link"]
    uri: str
    name: str
    mime_type: Lenient[str | None] = None
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    size: Lenient[Annotated[int, Strict()] | None] = None


class TextContents(WireModel):
    """A resource's text, as the client has it."""

    uri: str
    text: str
    mime_type: Lenient[str | None] = None
    meta: Meta = None


class BlobContents(WireModel):
    """A resource's bytes, base64."""

    uri: str
    blob: str
    mime_type: Lenient[str | None] = None
    meta: Meta = None


class ResourceBlock(_Block):
    """A resource that comes with its contents."""

    type: Literal["resource"]
    resource: TextContents | BlobContents


ContentBlock = Annotated[
    TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | ResourceBlock,
    Field(discriminator="type"),
]

BLOCKS: TypeAdapter[tuple[ContentBlock, ...]] = TypeAdapter(
    Annotated[tuple[ContentBlock, ...], FailFast()], config=ConfigDict(defer_build=True)
)
"""Validates a whole prompt."""
