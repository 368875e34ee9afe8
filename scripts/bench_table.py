"""A measured figure beside its baseline, and how a list of them is judged and printed. Measures nothing."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. value and baseline in `unit`; bound: the largest fair ratio, if any."""

    what: str
    value: float
    baseline: float | None = None
    against: str = ""
    unit: str = "ms"
    bound: float | None = None

    @property
    def ratio(self) -> float | None:
        """Value over baseline; None without one."""
        return self.value / self.baseline if self.baseline else None

    @property
    def verdict(self) -> str:
        """'ok', 'OVER', or '' where nothing is judged."""
        if self.bound is None or self.ratio is None:
            return ""
        return "ok" if self.ratio <= self.bound else "OVER"


def median(values: Sequence[float]) -> float:
    """The middle one; not a number when there is none."""
    return statistics.median(values) if values else float("nan")


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all (0 to 1) do not exceed; not a number when there is none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def figure(value: float | None, unit: str) -> str:
    """Three digits that matter, with the unit."""
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f} {unit}".rstrip()


def render(rows: Sequence[Row]) -> str:
    """The table as text."""
    head = ("", "ours", "baseline", "", "ratio", "bound", "")
    lines = [head]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        bound = "" if row.bound is None else f"{row.bound:g}"
        value, baseline = figure(row.value, row.unit), figure(row.baseline, row.unit)
        lines.append((row.what, value, baseline, row.against, ratio, bound, row.verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    left = {0, 3, 6}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
