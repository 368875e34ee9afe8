"""A session of 100,000 rows behind the API: memory is a page's, and what was read is not read again."""

import tracemalloc

import orjson

from runtime.store.memory import MemoryStore
from runtime.values.stored import SessionRecord, StoredEntry
from tests.acp_server.gateway.looked import desk
from tests.support.fakes import TIME

TURNS, ROWS = 20_000, 5
TEXT = "x" * 400


class Counting(MemoryStore):
    """Counts what is read."""

    read = 0

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        found = await super().entries(session_id, after=after, limit=limit)
        self.read += len(found)
        return found


def turn(number: int) -> list[StoredEntry]:
    """A turn of five rows: prompt, call, result, answer, end. Every tenth one drops the ten before."""
    base = f"turn:t{number}"
    call = {"call_id": f"c{number}", "id": "1", "name": "look", "arguments": "{}"}
    steps: list[tuple[str, dict[str, object]]] = [
        (f"{base}:prompt", {"kind": "prompt", "message_id": "", "text": f"p{number}", "blocks": []}),
        (f"{base}:iter:0", {"kind": "reply", "iteration": 0, "message_id": "", "text": "", "calls": [call]}),
        (
            f"{base}:iter:0:tool:c",
            {"kind": "tool", "iteration": 0, "call_id": f"c{number}", "status": "completed", "text": TEXT},
        ),
        (f"{base}:iter:1", {"kind": "reply", "iteration": 1, "message_id": "", "text": TEXT}),
        (f"{base}:end", {"kind": "end", "outcome": "done", "stop_reason": "end_turn"}),
    ]
    if number % 10 == 0 and number > 10:
        cut = {
            "kind": "trim", "trim_id": f"k{number}", "dropped_messages": 40, "dropped_turns": 10,
            "kept_turns": 1, "reason": "history turn limit exceeded", "strategy": "recent",
            "first_turn_id": f"t{number}",
        }  # fmt: skip
        steps.insert(1, (f"{base}:iter:0:trim:1", cut))
    return [StoredEntry(f"t{number}", key, str(step["kind"]), orjson.dumps(step)) for key, step in steps]


async def long_session() -> Counting:
    """The store with it."""
    store, state = Counting(), {"first_turn_id": f"t{TURNS}", "dropped_turns": TURNS - 1}
    await store.create_session(SessionRecord("s", "/project", TIME, TIME, state=orjson.dumps(state).decode()))
    for first in range(1, TURNS + 1, 1000):
        await store.append("s", [entry for number in range(first, first + 1000) for entry in turn(number)])
    return store


async def test_pages_cost_what_is_on_them() -> None:
    store = await long_session()
    async with desk(store) as client:
        assert (await client.get("/api/sessions/s"))["turns"] == TURNS
        store.read = 0
        tracemalloc.start()
        try:
            for part, key, query in (
                ("transcript", "turns", {"after": 0}),
                ("transcript", "turns", {"before": 2**53 - 1}),
                ("transcript", "turns", {"after": 50_000}),
                ("trims", "trims", {"before": 50_000}),
                ("timeline", "requests", {"after": 50_000}),
            ):
                assert len((await client.get(f"/api/sessions/s/{part}", **query))[key]) >= 20
            await client.get("/api/sessions/s/context")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8_000_000
    assert store.read < 4_000


async def test_a_turn_far_back_says_which_notice_took_it() -> None:
    async with desk(await long_session()) as client:
        page = await client.get("/api/sessions/s/transcript", after=25_000, limit=3)
        for found in page["turns"]:
            number = found["number"]
            assert found["view"] == "dropped"
            assert found["dropped_by"]["turn"] == number - number % 10 + 10
            (gone,) = found["dropped_by"]["dropped"]
            assert gone["first"] <= number <= gone["last"]
