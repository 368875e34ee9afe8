"""A model that cannot see, as a provider that never sends it a picture: a line stands where one was.

Knows no API. Histories keep their pictures, so that another model of the same session sees them.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from runtime.model import ModelRequest, Part, Segment
from runtime.ports import Provider
from runtime.rows import Image, Row

LINE = "[{what}: left out, because the model in use cannot see images]"


def has_pictures(row: Row) -> bool:
    """Whether a picture would be sent with the row."""
    return bool(row.images) or any(item.kind == "image" for item in row.attachments)


def described(row: Row) -> Row:
    """The row with a line in the place of each of its pictures."""
    if not has_pictures(row):
        return row
    targets = [item.target for item in row.attachments if item.kind == "image"]
    lines = [*map(line_for, row.images), *(LINE.format(what="attached image") for _ in targets)]
    return replace(
        row,
        content="\n".join(filter(None, [row.content, *lines])),
        images=(),
        attachments=tuple(item for item in row.attachments if item.kind != "image"),
    )


def line_for(image: Image) -> str:
    """What the model is told of a picture that it does not get."""
    size = f", about {max(len(image.data) * 3 // 4000, 1)} kB" if image.data else ""
    where = f" ({image.uri})" if image.uri and not image.uri.startswith("data:") else ""
    return LINE.format(what=f"{image.mime_type or 'image'}{size}{where}")


class SightlessProvider:
    """`runtime.ports.Provider` around another one. Segments without pictures go through as they are."""

    def __init__(self, inner: Provider) -> None:
        self.name = inner.name
        self._inner = inner
        self._made: dict[int, tuple[Segment, Segment]] = {}

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Part]]]:
        """See the port."""
        shown = [(segment, self._shown(segment)) for segment in request.segments]
        # Only what is sent now is kept: the bytes of these segments are then made once, too.
        self._made = {id(own): (own, other) for own, other in shown if own is not other}
        return self._inner.stream(replace(request, segments=tuple(other for _, other in shown)))

    async def aclose(self) -> None:
        """See the port."""
        await self._inner.aclose()

    def _shown(self, segment: Segment) -> Segment:
        if not any(map(has_pictures, segment.rows)):
            return segment
        known = self._made.get(id(segment))
        return Segment(tuple(map(described, segment.rows))) if known is None else known[1]
