"""Trouble that people had with stored sessions, each under the number of its report.

The reports speak of files of lines; here the same damage is done to a database and its log.
"""

import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.process.homes import Home
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet, replayed_turns, text_of

PAGE = 4096


def store(home: Home) -> Path:
    """The database file."""
    return home.data / "sessions.db"


def prompts_in(replay: list[Json]) -> list[str]:
    """The prompts of a replay."""
    return [text_of(turn.updates, "user_message_chunk") for turn in replayed_turns(replay)]


def transcript(home: Home) -> list[object]:
    """All stored entries, as the database has them."""
    with closing(sqlite3.connect(store(home))) as database:
        return database.execute("SELECT * FROM entries ORDER BY rowid").fetchall()


async def ten_turns(home: Home) -> Talk:
    """A stored session of ten turns, each about as large as a page of the file."""
    home.configure(profile="max_context_tokens = 0")
    home.script(echo="{turn}: " + "word " * 600)
    async with home.talk() as talk:
        for number in range(10):
            await talk.turn(f"question {number}")
    return talk


async def test_b080_a_kill_in_the_middle_of_a_replay_changes_nothing(home: Home) -> None:
    """A load only reads: the transcript is the same afterwards, byte for byte, and loads again."""
    talk = await ten_turns(home)
    before = transcript(home)
    async with home.start() as agent:
        await greet(agent)
        params = {"sessionId": talk.session_id, "cwd": str(home.work), "mcpServers": []}
        await agent.request("session/load", params)
        await agent.until(lambda frame: frame.get("method") == "session/update")
        await agent.kill()
    async with home.resumed(talk) as replay:
        assert len(prompts_in(replay)) == 10
    assert transcript(home) == before


async def test_b082_b109_a_hole_in_the_middle_is_stepped_over_and_told(home: Home) -> None:
    """Both sides of it load, the damaged file stays beside the new one, the next prompt works."""
    talk = await ten_turns(home)
    data = bytearray(store(home).read_bytes())
    start = data.index(b"question 5") // PAGE * PAGE
    data[start : start + PAGE] = bytes(range(256)) * (PAGE // 256)
    store(home).write_bytes(data)
    async with home.resumed(talk) as replay:
        loaded = prompts_in(replay)
        assert (loaded[0], loaded[-1]) == ("question 0", "question 9")
        turn = await talk.turn("and now?")
        assert turn.stop == "end_turn"
        assert "damaged" in turn.asides
    assert [path.read_bytes() for path in home.data.glob("sessions.db.corrupt-1")] == [bytes(data)]
    async with home.resumed(talk) as replay:
        assert prompts_in(replay) == [*loaded, "and now?"]


@pytest.mark.parametrize("torn", [1, 5000])
async def test_b108_a_torn_end_of_the_log_costs_no_later_row(home: Home, torn: int) -> None:
    """The power goes while the last bytes are written: what was whole loads, and what follows is kept."""
    async with home.talk() as talk:
        await talk.turn("old text")
        await talk.turn("torn text")
        await talk.agent.kill()
    log = home.data / "sessions.db-wal"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - torn)
    async with home.resumed(talk) as replay:
        assert prompts_in(replay)[:1] == ["old text"]
        assert (await talk.turn("new text")).stop == "end_turn"
    async with home.resumed(talk) as again:
        assert prompts_in(again) == [*prompts_in(replay), "new text"]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs to change the limits of another process")
async def test_b111_a_disk_that_is_full_for_a_while_loses_nothing(home: Home) -> None:
    """Told at once, kept in memory meanwhile, stored when there is room again."""
    home.script(echo="ok")
    async with home.talk() as talk:
        await talk.turn("before")
        pid = talk.agent.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        full = store(home).stat().st_size + 60_000
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (full, hard))
        first = await talk.turn("z" * 200_000)
        second = await talk.turn("again")
        assert (first.text, second.text) == ("ok", "ok")
        assert "memory" in first.asides + second.asides
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        third, fourth = await talk.turn("room again"), await talk.turn("last")
        assert "is stored" in third.asides + fourth.asides
    async with home.resumed(talk) as replay:
        assert prompts_in(replay) == ["before", "z" * 200_000, "again", "room again", "last"]
