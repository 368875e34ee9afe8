"""Calls and their results belong together: the checks and repairs of a request's rows, ids made unique.

A call row's run is the tool rows after it up to the next user or assistant row; system rows do not
end it. Everything here works on a copy for one request; no stored row changes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from runtime.values.rows import Row, ToolCall


class CallIds:
    """Gives ids out in order: the one wanted if it is free, else `id_2`, `id_3`, …, the next one free.

    taken: ids used before these. start: for an id, a number below which all its names are taken, so
    that an id used in every turn costs the same in the last as in the first. `numbers`: the same for
    the ids given out here.
    """

    __slots__ = ("_start", "_taken", "_used", "numbers")

    def __init__(
        self, taken: Callable[[str], bool] = lambda _: False, start: Callable[[str], int] = lambda _: 2
    ) -> None:
        self._taken = taken
        self._start = start
        self._used: set[str] = set()
        self.numbers: dict[str, int] = {}

    def has(self, name: str) -> bool:
        """True when it is in use."""
        return name in self._used or self._taken(name)

    def give(self, wanted: str) -> str:
        """A free id for a call that has this one; it is in use from now on."""
        free = wanted
        if self.has(wanted):
            number = self.numbers.get(wanted) or self._start(wanted)
            while self.has(f"{wanted}_{number}"):
                number += 1
            self.numbers[wanted] = number + 1
            free = f"{wanted}_{number}"
        self._used.add(free)
        return free


@dataclass(frozen=True, slots=True)
class Swept:
    """removed: rows taken out. orphan_tool_call_ids: of removed results and of calls in removed rows."""

    rows: list[Row]
    removed: int
    orphan_tool_call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stripped:
    """stripped: calls (not rows) taken out."""

    rows: list[Row]
    stripped: int


@dataclass(frozen=True, slots=True)
class Repaired:
    """Rows fit for a request. Figures are 0 when the history was whole already."""

    rows: tuple[Row, ...]
    removed_rows: int = 0
    stripped_calls: int = 0
    numbers: Mapping[str, int] = field(default_factory=dict)
    """For ids that were given another name: see CallIds."""


def remove_orphaned_tool_messages(rows: Sequence[Row]) -> Swept:
    """Take out call rows that follow another one directly, and results that answer no call of their run."""
    kept: list[Row] = []
    orphans: dict[str, None] = {}
    issued: set[str] | None = None
    refused: set[str] = set()
    after_calls = False
    for row in rows:
        if row.role == "system":
            kept.append(row)
            continue
        if row.role == "tool":
            answer = row.tool_call_id
            after_calls = False
            if issued is None or (answer and (answer in refused or answer not in issued)):
                orphans.update({answer: None} if answer else {})
                continue
            issued.discard(answer or "")
        elif row.role == "assistant" and row.tool_calls and after_calls:
            gone = [call.id for call in row.tool_calls if call.id]
            refused.update(gone)
            orphans.update(dict.fromkeys(gone))
            continue
        else:
            issued = {call.id for call in row.tool_calls if call.id} if row.tool_calls else None
            refused = set()
            after_calls = bool(row.tool_calls)
        kept.append(row)
    return Swept(kept, len(rows) - len(kept), tuple(orphans))


def strip_orphaned_tool_calls_from_assistants(rows: Sequence[Row]) -> Stripped:
    """Give results without an id to the first open call, then take out calls that nothing answers."""
    kept: list[Row] = []
    stripped = 0
    index = 0
    while index < len(rows):
        row = rows[index]
        index += 1
        if not row.tool_calls:
            kept.append(row)
            continue
        end = _run_end(rows, index)
        answered, run = _adopt(row.tool_calls, rows[index:end])
        stripped += len(row.tool_calls) - len(answered)
        if len(answered) < len(row.tool_calls):
            row = replace(row, tool_calls=tuple(answered))
        if row.tool_calls or row.content.strip():
            kept.append(row)
        kept += run
        index = end
    return Stripped(kept, stripped)


def _run_end(rows: Sequence[Row], start: int) -> int:
    end = start
    while end < len(rows) and rows[end].role in ("tool", "system"):
        end += 1
    return end


def _adopt(calls: Sequence[ToolCall], run: Iterable[Row]) -> tuple[list[ToolCall], list[Row]]:
    run = list(run)
    results: dict[str, int] = {}
    for row in run:
        if row.role == "tool" and row.tool_call_id:
            results[row.tool_call_id] = results.get(row.tool_call_id, 0) + 1
    answered: dict[int, ToolCall] = {}
    open_calls: list[tuple[int, ToolCall]] = []
    for place, call in enumerate(calls):
        if results.get(call.id, 0):
            results[call.id] -= 1
            answered[place] = call
        else:
            open_calls.append((place, call))
    kept: list[Row] = []
    for row in run:
        if row.role == "tool" and not row.tool_call_id:
            if not open_calls:
                continue
            place, call = open_calls.pop(0)
            answered[place] = call
            row = replace(row, tool_call_id=call.id)
        kept.append(row)
    return [answered[place] for place in sorted(answered)], kept


def unique_call_ids(rows: Sequence[Row], ids: CallIds | None = None) -> list[Row]:
    """Rename a call id that an earlier row used (`id_2`, `id_3`, …), in the call and in its results.

    ids: knows the ids used before these rows. Rows without a clash come back as they are.
    """
    ids = ids or CallIds()
    names: dict[str, str] = {}
    out: list[Row] = []
    for row in rows:
        if row.tool_calls:
            names = {call.id: ids.give(call.id) for call in row.tool_calls}
            row = _renamed(row, names)
        elif row.role == "tool" and row.tool_call_id is not None:
            new = names.get(row.tool_call_id, row.tool_call_id)
            row = row if new == row.tool_call_id else replace(row, tool_call_id=new)
        elif row.role != "system":
            names = {}
        out.append(row)
    return out


def _renamed(row: Row, names: Mapping[str, str]) -> Row:
    if all(old == new for old, new in names.items()):
        return row
    return replace(row, tool_calls=tuple(replace(call, id=names[call.id]) for call in row.tool_calls))


def _with_own_ids(rows: Sequence[Row]) -> list[Row]:
    """A call without an id, or with one its row has used already, gets one for a result to take."""
    return [_told_apart(row) if row.tool_calls else row for row in rows]


def _told_apart(row: Row) -> Row:
    names = [call.id for call in row.tool_calls]
    if all(names) and len(set(names)) == len(names):
        return row
    seen: set[str] = set()
    # The first call with an id keeps it; every other one gets a name that none of the row has.
    others = CallIds(set(names).__contains__)
    calls: list[ToolCall] = []
    for call in row.tool_calls:
        first = bool(call.id) and call.id not in seen
        seen.add(call.id)
        calls.append(call if first else replace(call, id=others.give(call.id or "call")))
    return replace(row, tool_calls=tuple(calls))


def pairs_ok(rows: Iterable[Row]) -> bool:
    """True when each call has exactly one result in its run, no result is alone, and ids are unique."""
    seen: set[str] = set()
    open_ids: set[str] = set()
    for row in rows:
        if row.role == "tool":
            if row.tool_call_id is None or row.tool_call_id not in open_ids:
                return False
            open_ids.remove(row.tool_call_id)
        elif row.role != "system":
            if open_ids or _blank(row):
                return False
            for call in row.tool_calls:
                if not call.id or call.id in seen:
                    return False
                seen.add(call.id)
                open_ids.add(call.id)
    return not open_ids


def _blank(row: Row) -> bool:
    return row.role == "assistant" and not row.tool_calls and not row.content.strip()


def call_ids(rows: Iterable[Row]) -> list[str]:
    """The ids of all calls, in order."""
    return [call.id for row in rows for call in row.tool_calls]


def repair(rows: Sequence[Row], ids: CallIds | None = None) -> Repaired:
    """Both sweeps, then unique ids; an assistant row that says nothing goes too.

    Whole rows come back as they are, and at little cost.
    """
    ids = ids or CallIds()
    if pairs_ok(rows) and not any(map(ids.has, call_ids(rows))):
        return Repaired(tuple(rows))
    swept = remove_orphaned_tool_messages(rows)
    stripped = strip_orphaned_tool_calls_from_assistants(_with_own_ids(swept.rows))
    spoken = [row for row in stripped.rows if not _blank(row)]
    final = unique_call_ids(spoken, ids)
    return Repaired(tuple(final), len(rows) - len(final), stripped.stripped, ids.numbers)
