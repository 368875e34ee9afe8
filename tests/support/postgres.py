"""A PostgreSQL server of the tests' own: made in a temporary folder, reached through a socket in it.

Knows no store. Tests that use it carry the mark `system`; where there is no PostgreSQL they are skipped.
"""

import atexit
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pytest

_RUNNING = "POSTGRES_OF_THE_TESTS"
"""The variable by which a child process finds the server of its parent."""
_USERS = ("postgres", "nobody")
_WAIT_SECONDS = 60.0
_SETTINGS = (
    *("listen_addresses=", "fsync=off", "synchronous_commit=on", "max_connections=60", "shared_buffers=32MB"),
    *("autovacuum_naptime=10s", "log_statement=none", "timezone=UTC"),
)


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, the newest one."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
    return None if newest is None else newest.parent


class Server:
    """A server with its own data. It can be stopped, killed and started again."""

    def __init__(self) -> None:
        found = programs()
        if found is None:
            pytest.skip("there is no PostgreSQL on this machine")
        self._programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="wtpg"))
        self._process: subprocess.Popen[bytes] | None = None
        self._user: pwd.struct_passwd | None = None
        if os.getuid() == 0:
            # It refuses to run as root.
            self._user = user = next(user for user in map(_user, _USERS) if user is not None)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self._run("initdb", "-D", "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")

    def start(self) -> None:
        """Start it and wait until it lets us in."""
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        command = [str(self._programs / "postgres"), "-D", "data", "-k", str(self.folder), *settings]
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            self._process = self._open(command)
            while self._process.poll() is None:
                if self._answers():
                    return
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.02)
            # After a kill, what the old one left may be in its way for a moment.
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.1)

    def stop(self, *, kill: bool = False) -> None:
        """End it: connections are cut; kill: nothing is tidied up."""
        if self._process is not None:
            if kill:
                self._process.kill()
            else:
                self._process.send_signal(2)
            self._process.wait(_WAIT_SECONDS)
            self._process = None

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Nothing of it runs meanwhile: its connections stay, and nobody answers."""
        assert self._process is not None
        every = [self._process.pid, *_children(self._process.pid)]
        try:
            for pid in every:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in every:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def remove(self) -> None:
        """End it and leave nothing."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, database: str = "postgres", **parameters: str) -> str:
        """Where it is found."""
        given = {"host": str(self.folder), **parameters}
        query = "&".join(f"{name}={quote(value, safe='/')}" for name, value in given.items())
        return f"postgresql://tester@/{database}?{query}"

    def ask(self, query: str) -> list[tuple[object, ...]]:
        """The answer to any statement, on a connection of its own."""
        return ask(self.address(), query)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.address(), connect_timeout=5).close()
        except psycopg.Error:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        process = self._open([str(self._programs / program), *arguments])
        assert process.wait(_WAIT_SECONDS) == 0, (self.folder / "log").read_text()

    def _open(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user.pw_uid if self._user else None,
                group=self._user.pw_gid if self._user else None,
                extra_groups=[] if self._user else None,
            )


def ask(address: str, query: str) -> list[tuple[object, ...]]:
    """The answer to any statement."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        found = connection.execute(query.encode())
        return found.fetchall() if found.description else []


@cache
def _started() -> Server:
    server = Server()
    server.start()
    atexit.register(server.remove)
    os.environ[_RUNNING] = server.address()
    return server


def shared() -> str:
    """The address of the server that all tests of this process share, and its children."""
    return os.environ.get(_RUNNING) or _started().address()


def stop_shared() -> None:
    """At the end of a run: the server goes with it."""
    if _started.cache_info().currsize:
        _started().remove()
        del os.environ[_RUNNING]
        _started.cache_clear()


def address_of(folder: Path) -> str:
    """A store of its own for a folder's name: a schema in the shared server."""
    schema = "t" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    ask(shared(), f"CREATE SCHEMA IF NOT EXISTS {schema}")
    return f"{shared()}&options=-csearch_path%3D{schema}"


def _children(pid: int) -> list[int]:
    """The processes that a process started, those that ended meanwhile left out."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # Behind the name, which may hold anything, stand the state and the parent.
            if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(status.parent.name))
    return found


def _user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
