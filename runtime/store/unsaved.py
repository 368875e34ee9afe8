"""What of one session is not stored yet, and how the session looks with it. Pure: knows no store.

Named tuples rather than dataclasses: every start pays for these classes, and one costs a fifth.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from runtime.store.memory import changed_head
from runtime.stored import HeadChange, SessionRecord, Store, StoredEntry


class Created(NamedTuple):
    """A new session."""

    record: SessionRecord

    async def apply(self, store: Store) -> None:
        """Make the change in `store`."""
        await store.create_session(self.record)


class Appended(NamedTuple):
    """New entries, perhaps with a change of the head."""

    session_id: str
    entries: tuple[StoredEntry, ...]
    head: HeadChange

    async def apply(self, store: Store) -> None:
        """Make the change in `store`."""
        await store.append(self.session_id, self.entries, head=self.head)


Change = Created | Appended


class Stored:
    """What the store holds of a session: its last number and all keys."""

    __slots__ = ("keys", "last")

    def __init__(self) -> None:
        self.last = 0
        self.keys: set[str] = set()

    def add(self, entries: Sequence[StoredEntry]) -> None:
        """Take note of a page."""
        self.keys.update(entry.key for entry in entries)
        self.last = max((entry.seq for entry in entries), default=self.last)


def is_new(changes: deque[Change]) -> bool:
    """Whether the store does not know the session at all."""
    return bool(changes) and isinstance(changes[0], Created)


def head_with(changes: deque[Change], stored: SessionRecord | None) -> SessionRecord | None:
    """The head as it will be; `stored` is what the store has."""
    head = stored
    for change in changes:
        match change:
            case Created(record):
                head = record
            case Appended(_, _, changed) if head:
                head = changed_head(head, changed)
    return head


def entries_of(changes: deque[Change], stored: Stored) -> list[StoredEntry]:
    """The entries that are not stored, numbered as the store will number them."""
    found: dict[str, StoredEntry] = {}
    for change in changes:
        for entry in change.entries if isinstance(change, Appended) else ():
            if entry.key not in stored.keys and entry.key not in found:
                found[entry.key] = replace(entry, seq=stored.last + len(found) + 1)
    return list(found.values())
