"""Where a stored session's news begins when it is first seen to change. Knows the store's port alone.

A store tells that a session changed, not what; and nothing is remembered of sessions that do not change. So
it is told by the session's head and by its last turn.
"""

from runtime.stored import SessionRecord, Store, StoredEntry

WINDOW = 250
"""Entries read in search of a turn's begin, at first; twice as many the next time."""
WIDEST = 4000
"""A turn with more entries than this is told from its middle on."""
TAIL = 8
"""Entries among which the end of the last turn is, if it ended."""
END = "end"
"""The kind of the entry that ends a turn."""


async def start_of_news(store: Store, record: SessionRecord, since: str) -> int:
    """The entry behind which all is news, if the session changed since that moment (ISO 8601, UTC).

    Of an older session it is the last turn, unless that ended before and only the head has changed. Copies of
    other sessions bring no news.
    """
    last = await last_place(store, record.session_id)
    turn = await last_turn(store, record.session_id, last)
    if not turn:
        return 0
    ended = any(entry.kind == END for entry in turn)
    if record.created_at >= since:
        is_copy = ended and record.updated_at == record.created_at
        return last if is_copy else 0
    return last if ended and record.updated_at < since else turn[0].seq - 1


async def place_at_rest(store: Store, record: SessionRecord, since: str) -> int | None:
    """The last entry of a session in which nothing has happened since; None while a turn runs in it, or broke
    off, and of one that changed since: its news begin elsewhere.
    """
    if record.created_at >= since or record.updated_at >= since:
        return None
    last = await last_place(store, record.session_id)
    tail = await store.entries(record.session_id, after=max(last - TAIL, 0), limit=TAIL)
    turn = [entry for entry in tail if entry.turn_id == tail[-1].turn_id]
    # Trims for the next turn may follow on a turn's end.
    return last if any(entry.kind == END for entry in turn) else None


async def last_place(store: Store, session_id: str) -> int:
    """The seq of a session's last entry, 0 for none; found in steps that halve what is left."""
    there, beyond = 0, 1
    while await store.entries(session_id, after=beyond - 1, limit=1):
        there, beyond = beyond, beyond * 2
    while beyond - there > 1:
        middle = (there + beyond) // 2
        if await store.entries(session_id, after=middle - 1, limit=1):
            there = middle
        else:
            beyond = middle
    return there


async def last_turn(store: Store, session_id: str, last: int) -> list[StoredEntry]:
    """The entries of the turn that the last one belongs to."""
    window = WINDOW
    while True:
        after = max(last - window, 0)
        found = await store.entries(session_id, after=after, limit=window)
        turn = list(found)
        for at in range(len(found) - 1, -1, -1):
            if found[at].turn_id != found[-1].turn_id:
                turn = found[at + 1 :]
                break
        if len(turn) < len(found) or not after or window >= WIDEST:
            return turn
        window *= 2
