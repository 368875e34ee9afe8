"""A store that is locked, damaged, read-only or not there: said to the person, served on, nothing lost."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.process.homes import Home
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, Turn, greet, of_kind, replayed_turns, text_of

TOLD = "Session store"
NOTICES: Json = {"session": {"notices": {}}}


def store(home: Home) -> Path:
    """The database file."""
    return home.data / "sessions.db"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another program holds the write lock."""
    with sqlite3.connect(file, isolation_level=None, timeout=0) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.rollback()
    other.close()


async def one_turn(home: Home) -> Talk:
    """A session with a stored turn; its process has ended."""
    async with home.talk() as talk:
        assert (await talk.turn("one")).text == "1: you said one"
    return talk


async def prompts_in(home: Home, talk: Talk) -> list[str]:
    """The prompts that a new process replays."""
    async with home.resumed(talk) as replay:
        return [text_of(turn.updates, "user_message_chunk") for turn in replayed_turns(replay)]


def told(*turns: Turn) -> str:
    """What the person was told beside the answers."""
    return "".join(turn.asides for turn in turns)


async def test_no_place_for_the_store_is_told_and_the_session_lives_in_memory(home: Home) -> None:
    """The data folder's parent is a file. Within the process even a load works."""
    (home.root / "file").write_text("no folder")
    home.extra_env["WHOLETURN_DATA_DIR"] = str(home.root / "file" / "data")
    async with home.talk() as talk:
        first, second = await talk.turn("one"), await talk.turn("two")
        assert (first.text, second.text) == ("1: you said one", "2: you said two")
        assert TOLD in told(first)
        assert "memory" in told(first)
        assert TOLD not in told(second)
        assert text_of(await talk.load(talk.agent), "user_message_chunk") == "onetwo"
        listed = await talk.agent.call("session/list", {})
        assert [entry["sessionId"] for entry in listed["sessions"]] == [talk.session_id]


async def test_trouble_is_a_notice_for_a_client_that_takes_them(home: Home) -> None:
    (home.root / "file").write_text("no folder")
    home.extra_env["WHOLETURN_DATA_DIR"] = str(home.root / "file" / "data")
    async with home.talk(NOTICES) as talk:
        turn = await talk.turn("one")
        notice = of_kind(turn.updates, "notice")[0]
        assert (notice["severity"], notice["title"]) == ("warning", TOLD)
        assert turn.asides == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_may_not_be_written(home: Home) -> None:
    home.data.mkdir(mode=0o500)
    async with home.talk() as talk:
        assert TOLD in told(await talk.turn("one"))


async def test_a_store_that_is_locked_for_a_while_loses_nothing(home: Home) -> None:
    """Told once, kept in memory meanwhile, all stored when the lock is gone, and that is told as well."""
    talk = await one_turn(home)
    async with home.resumed(talk):
        with locked(store(home)):
            second = await talk.turn("two")
            assert second.text == "2: you said two"
        third = await talk.turn("three")
        fourth = await talk.turn("four")
        assert "locked" in told(second, third)
        assert "stored" in told(third, fourth)
    assert await prompts_in(home, talk) == ["one", "two", "three", "four"]


async def test_a_store_that_is_locked_from_the_start_until_the_end(home: Home) -> None:
    """What was stored before is untouched, and the process still ends in time."""
    talk = await one_turn(home)
    async with home.start() as agent:
        await greet(agent)
        with locked(store(home)):
            new = await Talk.new(agent, home.work)
            turn = await new.turn("in memory")
            assert turn.stop == "end_turn"
            assert "locked" in told(turn)
            assert await agent.close() == 0
    assert await prompts_in(home, talk) == ["one"]


@pytest.mark.parametrize(
    ("content", "words"), [(b"a letter to my mother\n", "is a text"), (b"a picture \0 of her", TOLD)]
)
async def test_a_file_that_is_no_database_is_never_overwritten(
    home: Home, content: bytes, words: str
) -> None:
    home.data.mkdir()
    store(home).write_bytes(content * 1000)
    async with home.talk() as talk:
        first, second = await talk.turn("one"), await talk.turn("two")
        assert second.text == "2: you said two"
        assert words in told(first, second)
    kept = [path.read_bytes() for path in home.data.iterdir()]
    assert content * 1000 in kept


async def test_a_database_of_another_program_is_left_alone(home: Home) -> None:
    home.data.mkdir()
    with sqlite3.connect(store(home)) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.execute("INSERT INTO recipes VALUES ('soup')")
    other.close()
    before = store(home).read_bytes()
    async with home.talk() as talk:
        assert "another program" in told(await talk.turn("one"))
    assert store(home).read_bytes() == before
