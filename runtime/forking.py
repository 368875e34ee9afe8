"""Copies of a session to go on with: all of it, or up to the end of a turn. The session stays as it is."""

from contextlib import aclosing

from runtime.errors import InvalidParams
from runtime.goals import goal_record
from runtime.ids import new_id
from runtime.loading import read_state
from runtime.numbering import Counting
from runtime.record import read_turns
from runtime.stored import SessionRecord, Store

EVERYTHING = 2**32 - 1
"""A seq that no entry of a session passes."""


def new_session_id() -> str:
    """An id for a session."""
    return f"sess_{new_id()}"


async def copy_session(store: Store, source: SessionRecord, *, now: str) -> SessionRecord:
    """A new session with all entries of `source` and its cut. now: ISO 8601 UTC."""
    record = source._replace(session_id=new_session_id(), created_at=now, updated_at=now)
    await store.fork_session(record, source.session_id, up_to=EVERYTHING)
    return record


async def rewind(store: Store, source: SessionRecord, number: int, *, now: str) -> SessionRecord:
    """A new session that ends with the turn of this number, and knows of the model's view what it was then.

    A trim that came later is undone in it. Raises InvalidParams when there is no such turn.
    """
    counting = Counting()
    async with aclosing(read_turns(store, source.session_id)) as turns:
        async for turn in turns:
            last = turn.prompt is not None and counting.number + 1 == number
            counting.add(turn, with_trims_after=not last)
            if last:
                record = _rewound(source, counting, now)
                await store.fork_session(record, source.session_id, up_to=turn.last_seq)
                return record
    raise InvalidParams(f"There is no turn {number}: this session has {counting.number}.")


def _rewound(source: SessionRecord, counting: Counting, now: str) -> SessionRecord:
    state = read_state(source.state).model_copy(
        update={
            "first_turn_id": counting.first_turn_id(),
            "dropped_turns": counting.dropped,
            "history_has_trim_breadcrumb": counting.dropped > 0,
            "held": counting.cut[1] if counting.dropped else (),
            "notes": counting.notes if counting.dropped else "",
            "goal": goal_record(counting.goal),
        }
    )
    title = f"{source.title} (to turn {counting.number})" if source.title else None
    return source._replace(
        session_id=new_session_id(),
        created_at=now,
        updated_at=now,
        title=title,
        state=state.model_dump_json(),
    )
