"""One system row from many. Knows nothing of turns."""

from collections.abc import Iterable, Sequence

from runtime.rows import Row


def join_system(texts: Iterable[str]) -> str:
    """All texts that are not empty, in order, with a blank line between; '' for none."""
    return "\n\n".join(text for text in texts if text)


def normalize_system_messages(rows: Sequence[Row]) -> list[Row]:
    """The rows with all system text in one row at index 0, or without any when all of it is empty."""
    text = join_system(row.content for row in rows if row.role == "system")
    rest = [row for row in rows if row.role != "system"]
    return [Row("system", text), *rest] if text else rest
