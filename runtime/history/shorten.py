"""A running turn with the results of its oldest rounds cut to a line, for a request that must fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from runtime.history.boundaries import TOOL_RESULTS_PREFIX, is_tool_result_carrier
from runtime.history.counter import utf8_length
from runtime.history.estimate import RowPrice
from runtime.rows import Row


def short_row(row: Row) -> Row:
    """The row with its result replaced, id and pairing kept; the row itself if that saves no byte."""
    size = utf8_length(row.content)
    text = f"[result shortened to fit: {size} bytes; use recall_history]"
    if row.role != "tool":
        text = f"{TOOL_RESULTS_PREFIX}\n{text}"
    if utf8_length(text) >= size and not row.attachments:
        return row
    return replace(row, content=text, attachments=())


def completed_rounds(rows: Sequence[Row]) -> list[list[int]]:
    """Indexes of the result rows of each tool round, oldest first, without the newest round.

    The prompt and what the user wrote are never among them.
    """
    rounds: list[list[int]] = []
    fresh = True
    for index, row in enumerate(rows):
        if index and is_tool_result_carrier(row) and row.origin != "user":
            if fresh:
                rounds.append([])
            rounds[-1].append(index)
            fresh = False
        elif row.role == "assistant":
            fresh = True
    return rounds[:-1]


@dataclass(frozen=True, slots=True)
class Shortened:
    """Rows with the results of the oldest `rounds` cut; `results` says how many rows that changed."""

    rows: tuple[Row, ...]
    rounds: int
    results: int


def shorten(rows: Sequence[Row], rounds: int) -> Shortened:
    """Cut the results of the oldest `rounds` completed rounds (fewer, if there are not as many)."""
    chosen = completed_rounds(rows)[:rounds]
    out = list(rows)
    results = 0
    for index in (index for one in chosen for index in one):
        out[index] = short_row(rows[index])
        results += out[index] is not rows[index]
    return Shortened(tuple(out), len(chosen), results)


def rounds_to_cut(
    rows: Sequence[Row],
    prices: Sequence[RowPrice],
    done: int,
    price: Callable[[Row], RowPrice],
    enough: Callable[[int], bool],
) -> int:
    """How many of the oldest rounds must be cut, at least the `done` ones.

    enough: takes the tokens saved beyond what `done` saves already.
    """
    saved = 0
    rounds = completed_rounds(rows)
    for number in range(done, len(rounds)):
        for index in rounds[number]:
            short = short_row(rows[index])
            if short is not rows[index]:
                saved += prices[index].tokens - price(short).tokens
        if enough(saved):
            return number + 1
    return max(done, len(rounds))
