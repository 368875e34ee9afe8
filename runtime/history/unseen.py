"""A running turn without the pictures that a provider refused: a line stands in their place. Pure."""

from copy import copy
from dataclasses import replace

from runtime.history.turn import Turn
from runtime.history.turns import History
from runtime.rows import Image, Row

LEFT_OUT = "[{what}, about {size} kB{name}: left out. {why}]"


def without_pictures(row: Row, why: str) -> Row:
    """The row with a line for each of its pictures. why: a sentence."""
    lines = [left_out(image, why) for image in row.images]
    return replace(row, content="\n".join(filter(None, [row.content, *lines])), images=()) if lines else row


def left_out(image: Image, why: str) -> str:
    """What is said of a picture that is not sent: its kind, size and name, and the reason."""
    size = max(len(image.data) * 3 // 4000, 1)
    name = f" ({image.uri})" if image.uri and not image.uri.startswith("data:") else ""
    return LEFT_OUT.format(what=image.mime_type or "image", size=size, name=name, why=why)


def refused_pictures(history: History) -> tuple[Image, ...]:
    """The pictures of the running turn's prompt."""
    rows = history.current.rows if history.current is not None and history.running else ()
    return next((row.images for row in reversed(rows) if row.images), ())


def blinded(history: History, why: str) -> History:
    """The history without those pictures; `history` is left as it is."""
    current = history.current
    if current is None:
        return history
    rows = list(current.rows)
    at = max((index for index, row in enumerate(rows) if row.images), default=None)
    if at is None:
        return history
    rows[at] = without_pictures(rows[at], why)
    other = copy(history)
    other.current = Turn(current.turn_id, current.seq, (), (), history.shared).extended(rows)
    return other
