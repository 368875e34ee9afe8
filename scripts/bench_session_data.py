"""Stored sessions to measure with, written straight through the store: one that is very long, and very many.

The long one is as the server leaves a session that was trimmed all along: every step of every turn is there,
and its cut says that the model gets the last turns only.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import trio

from mock_text import prompt_text, prose, reply_text
from runtime.store.sqlite.store import SqliteStore
from runtime.values.stored import HeadChange, SessionRecord, StoredEntry

LONG = "sess_bench_long"
EMPTY = "sess_bench_empty"
CALLS = 4
"""Tool rounds in a turn: with prompt and answer ten rows."""
KEPT = 10
"""Turns of the long session that the model still gets."""
TURNS_AT_ONCE = 200
RESULT = 300
TEXT = 200


def step(turn: str, key: str, kind: str, **fields: object) -> StoredEntry:
    """One entry. key: below the turn's own."""
    payload = json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode()
    return StoredEntry(turn, f"turn:{turn}:{key}", kind, payload)


def turn_entries(number: int, cwd: Path) -> Iterator[StoredEntry]:
    """A prompt, rounds of one tool call each, an answer, the end."""
    turn = f"bench{number:06d}"
    text = prompt_text(number, TEXT)
    blocks = [{"type": "text", "text": text}]
    yield step(turn, "prompt", "prompt", message_id=f"{turn}u", text=text, blocks=blocks)
    path = str(cwd / "notes.txt")
    given = {"path": path}
    for at in range(CALLS):
        call = {"call_id": f"{turn}c{at}", "id": f"call_{number}_{at}", "name": "read_file"}
        call["arguments"] = json.dumps(given)
        said = {"iteration": at, "message_id": f"{turn}m{at}", "text": ""}
        yield step(turn, f"iter:{at}", "reply", **said, calls=[call], stop="tool_calls")
        shown = {"title": f"Read {path}", "tool_kind": "read", "locations": [[path, None]]}
        yield step(
            turn,
            f"iter:{at}:tool:{call['call_id']}",
            "tool",
            iteration=at,
            call_id=call["call_id"],
            status="completed",
            text=prose(RESULT, number),
            raw_input=given,
            **shown,
        )
    answer = {"message_id": f"{turn}m", "text": reply_text(number, TEXT)}
    yield step(turn, f"iter:{CALLS}", "reply", iteration=CALLS, **answer)
    yield step(turn, "end", "end", outcome="done", stop_reason="end_turn")


def record(session_id: str, cwd: Path, second: int = 0) -> SessionRecord:
    """A head. second: since an hour that is always the same."""
    time = f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000000Z"
    return SessionRecord(session_id, str(cwd), time, time, title=f"Session {session_id}")


async def write_long(store: SqliteStore, cwd: Path, turns: int) -> None:
    """The long session, and an empty one to compare with."""
    for name in (LONG, EMPTY):
        await store.create_session(record(name, cwd))
    for first in range(1, turns + 1, TURNS_AT_ONCE):
        numbers = range(first, min(first + TURNS_AT_ONCE, turns + 1))
        await store.append(LONG, [entry for number in numbers for entry in turn_entries(number, cwd)])
    gone = turns - KEPT
    cut = {
        "version": 2,
        "first_turn_id": f"bench{gone + 1:06d}",
        "dropped_turns": gone,
        "history_has_trim_breadcrumb": True,
    }
    await store.append(LONG, (), head=HeadChange(state=json.dumps(cut)))


async def write_many(store: SqliteStore, cwd: Path, count: int) -> None:
    """Empty sessions, half of them of another folder."""
    folders = (cwd, cwd / "other")
    async with trio.open_nursery() as nursery:
        for at in range(count):
            head = record(f"sess_bench_{at:06d}", folders[at % 2], at)
            nursery.start_soon(store.create_session, head)


def make_store(folder: Path, cwd: Path, *, turns: int = 0, sessions: int = 0) -> Path:
    """A data folder with such a store; its path."""
    folder.mkdir()

    async def fill() -> None:
        store = SqliteStore(folder / "sessions.db")
        try:
            if turns:
                await write_long(store, cwd, turns)
            if sessions:
                await write_many(store, cwd, sessions)
        finally:
            await store.aclose()

    trio.run(fill)
    return folder
