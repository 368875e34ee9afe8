"""A store that is opened by a symbolic link: the link stays, what belongs to the file lies beside it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runtime.store.common.faults import StoreTrouble
from runtime.store.sqlite.file import StoreFile
from runtime.store.sqlite.store import SqliteStore
from runtime.values.stored import SessionRecord

RECORD = SessionRecord("s", "/p", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z")


@pytest.fixture
def link(tmp_path: Path) -> Path:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").mkdir()
    made = tmp_path / "linked" / "sessions.db"
    made.symlink_to(tmp_path / "real" / "store.db")
    return made


def check_sound_behind(link: Path) -> None:
    """The link is one still, and what it names is a database."""
    assert link.is_symlink()
    with closing(sqlite3.connect(link.resolve())) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)


async def test_its_lock_is_the_one_of_the_file(link: Path) -> None:
    store = SqliteStore(link)
    await store.create_session(RECORD)
    await store.aclose()
    assert [path.name for path in link.parent.iterdir()] == ["sessions.db"]
    assert (link.parent.parent / "real" / "store.db.lock").exists()


async def test_a_repair_leaves_the_link(link: Path) -> None:
    real = link.parent.parent / "real" / "store.db"
    store = SqliteStore(real)
    await store.create_session(RECORD)
    await store.aclose()
    real.write_bytes(real.read_bytes()[:4096] + b"\xff" * 8192)
    told: list[str] = []
    store = SqliteStore(link, on_repair=told.append)
    await store.session("s")
    await store.aclose()
    assert len(told) == 1
    check_sound_behind(link)


def test_none_repairs_what_another_has_open_by_its_other_name(link: Path) -> None:
    real = link.parent.parent / "real" / "store.db"
    one, other = (StoreFile(path, patience=0.1) for path in (real, link))
    connections = [one.open_writer(), other.open_writer()]
    for connection in connections:
        connection.close()
    with pytest.raises(StoreTrouble, match="another process has it open"):
        other.repair()
    one.close()
    assert "was damaged" in other.repair()
    other.close()
