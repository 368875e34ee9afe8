"""When a refused request is sent again, after how long, and where; and a provider that is sent no pictures.

The latter stands around a model that cannot see: a line stands where a picture was. Histories keep their
pictures, so that another model of the same session sees them. Knows no API and no HTTP client.
"""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from runtime.ports import Provider
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.model import ModelRequest, Part, Segment
from runtime.values.rows import Image, Row

MAX_RETRIES = 2
MAX_WAIT = 20.0
"""Seconds. A provider that asks for more is not asked again: its error goes out, wait included."""
FIRST_WAIT = 0.5

_MAY_PASS = frozenset(
    {
        ProviderErrorKind.RATE_LIMIT,
        ProviderErrorKind.OVERLOADED,
        ProviderErrorKind.SERVER,
        ProviderErrorKind.UNREACHABLE,
        ProviderErrorKind.STREAM_DROPPED,
    }
)

_PICTURE = re.compile(r"\b(image|picture|media.type|vision|multimodal|pixel)", re.IGNORECASE)

MAY_PASS_ELSEWHERE = frozenset(ProviderErrorKind) - {
    ProviderErrorKind.AUTH,
    ProviderErrorKind.BAD_REQUEST,
    ProviderErrorKind.REFUSED,
}
"""Failures that another model need not share. A key is for a person to mend; what one model refused is not
passed on to the next.
"""


def retry_delay(error: ProviderError, attempt: int, random: Callable[[], float]) -> float | None:
    """Seconds to wait before the next try, None when there is none.

    attempt: 0 for the first failure. random: gives 0.0 <= x < 1.0; half of each wait is jitter,
    so that several sessions do not come back at the same moment.
    """
    if attempt >= MAX_RETRIES or not error.retryable or not _may_pass(error):
        return None
    if error.retry_after is not None:
        # Never before the stated time; a little after it, for the same reason as the jitter.
        return error.retry_after + random() * 0.25 if error.retry_after <= MAX_WAIT else None
    wait: float = FIRST_WAIT * 2**attempt
    return wait * (0.5 + random() / 2)


def blames_pictures(error: ProviderError) -> bool:
    """Whether a request was refused for a picture in it, by the provider's own words."""
    words = f"{error.code} {error.detail} {error.message}"
    return error.kind is ProviderErrorKind.BAD_REQUEST and _PICTURE.search(words) is not None


def _may_pass(error: ProviderError) -> bool:
    # A server that says it was too slow may be quicker now; one that was waited for has cost minutes already.
    told_late = error.kind is ProviderErrorKind.TIMEOUT and error.status is not None
    return told_late or error.kind in _MAY_PASS


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
        shown = [(segment, self._shown(segment)) for segment in request.segments]
        # Only what is sent now is kept: the bytes of these segments are then made once, too.
        self._made = {id(own): (own, other) for own, other in shown if own is not other}
        return self._inner.stream(replace(request, segments=tuple(other for _, other in shown)))

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _shown(self, segment: Segment) -> Segment:
        if not any(map(has_pictures, segment.rows)):
            return segment
        known = self._made.get(id(segment))
        return Segment(tuple(map(described, segment.rows))) if known is None else known[1]
