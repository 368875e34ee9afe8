"""Files opened by hand beside a database that is open: its locks stay, whatever the file is called."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.store.sqlite.connection import connect, is_text, open_for_reading, open_for_writing
from runtime.values.file_access import DatabaseHeld, Hold, close, opened, reading, refuse_held, writing
from tests.locks import LockAsker

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX locks")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store that this process has open."""
    path = tmp_path / "s.db"
    connection = open_for_writing(path, timeout=1)
    yield path
    connection.close()


def look(path: Path) -> None:
    with reading(path) as file:
        file.read()


def overwrite(path: Path) -> None:
    with writing(path) as file:
        file.write(b"gone")


def descriptors(path: Path) -> int:
    """How many of the file there are in this process."""
    found = 0
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            found += os.path.samestat(os.fstat(int(name)), path.stat())
    return found


def symlink(path: Path) -> Path:
    made = path.with_name("link")
    made.symlink_to(path.name)
    return made


def hard_link(path: Path) -> Path:
    made = path.with_name("hard")
    os.link(path, made)
    return made


def roundabout(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / "." / path.name


@pytest.mark.parametrize("touch", [look, overwrite])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("spelling", [Path, symlink, hard_link, roundabout])
def test_no_name_of_it_is_opened(
    store: Path,
    lock_asker: LockAsker,
    spelling: Callable[[Path], Path],
    suffix: str,
    touch: Callable[[Path], None],
) -> None:
    name = spelling(Path(f"{store}{suffix}"))
    before, size = descriptors(name), name.stat().st_size
    with pytest.raises(DatabaseHeld):
        touch(name)
    assert lock_asker.has(store)
    assert (descriptors(name), name.stat().st_size) == (before, size)


def test_readers_and_a_second_writer_leave_the_locks(store: Path, lock_asker: LockAsker) -> None:
    reader = open_for_reading(store, timeout=1)
    assert lock_asker.has(store)
    second = open_for_writing(store, timeout=1)
    second.close()
    assert lock_asker.has(store)
    assert not is_text(store)
    reader.close()
    assert lock_asker.has(store)


@pytest.mark.opens_stores
def test_what_was_open_before_stays_open_as_long_as_the_connection(
    tmp_path: Path, lock_asker: LockAsker
) -> None:
    path = tmp_path / "s.db"
    open_for_writing(path, timeout=1).close()
    with opened(path):
        connection = open_for_writing(path, timeout=1)
    assert lock_asker.has(path)
    connection.close()
    assert descriptors(path) == 0


@pytest.mark.opens_stores
def test_what_is_swapped_in_between_look_and_opening_is_not_closed(
    store: Path, tmp_path: Path, lock_asker: LockAsker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tmp_path / "harmless"
    name.write_text("text")
    real = os.open

    def swapping(path: str, *rest: int, **more: int) -> int:
        name.unlink()
        os.link(store, name)
        return real(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", swapping)
        with pytest.raises(DatabaseHeld):
            look(name)
    assert lock_asker.has(store)


@pytest.mark.opens_stores
def test_a_connection_waits_for_a_descriptor_that_is_being_closed(
    tmp_path: Path, lock_asker: LockAsker, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    open_for_writing(path, timeout=1).close()
    real, began, go_on = os.close, threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        began.set()
        assert go_on.wait(10)
        real(descriptor)

    descriptor = os.open(path, os.O_RDONLY)
    monkeypatch.setattr(os, "close", slow)
    closer = threading.Thread(target=close, args=[descriptor])
    closer.start()
    assert began.wait(10)
    connections: list[sqlite3.Connection] = []
    opener = threading.Thread(target=lambda: connections.append(open_for_writing(path, timeout=1)))
    opener.start()
    opener.join(0.1)
    assert connections == []
    go_on.set()
    opener.join(10)
    closer.join(10)
    assert lock_asker.has(path)
    connections[0].close()


def test_afterwards_it_is_a_file_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    first, second = open_for_writing(path, timeout=1), connect(path, 1.0)
    first.close()
    first.close()
    with pytest.raises(DatabaseHeld):
        refuse_held(path.stat(), path)
    second.close()
    look(path)


def test_a_claim_is_given_up_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    one, other = Hold(path), Hold(path)
    one.release()
    one.release()
    with pytest.raises(DatabaseHeld):
        look(path)
    other.release()
    look(path)
