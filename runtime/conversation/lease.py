"""A session's lease as the session uses it: had before a prompt is answered, shown with each entry.

Until its first prompt a session only reads, so another window can have it. Also who holds a lease, and
whether that process is still alive: a process id means something only on one machine and, on Linux, in one
namespace of process ids; elsewhere nothing is known, and a lease has to run out. Knows the Store port, no
store.
"""

import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import cache

import trio

from runtime.values.errors import LeaseLost, StoreError
from runtime.values.file_access import read_text
from runtime.values.ids_and_time import new_id
from runtime.values.stored import (
    UNCHANGED,
    Checkpoints,
    HeadChange,
    Hit,
    Holder,
    Lease,
    Leases,
    SessionPage,
    SessionRecord,
    Store,
    StoredEntry,
)

RELEASE_SECONDS = 0.5
"""How long giving a lease back may hold up the end of a session; left alone it runs out by itself."""


class SessionLease:
    """One opened session's right to write. Its conversation is taken to know entries up to `seen`."""

    def __init__(self, leases: Leases, session_id: str, holder: Holder) -> None:
        self.session_id = session_id
        self.seen = 0
        self._leases = leases
        self._free = Lease(session_id, holder, 0, -1)
        self._lease: Lease | None = None
        self._lost: Lease | None = None
        self._stale = False

    @property
    def current(self) -> Lease:
        """What is shown with an entry. With fence 0 it says who writes, as long as nobody else does.

        A lease that was lost goes on being shown, and is refused: the end of a turn that others went past
        must not be written behind their work, even if nobody has the session by then.
        """
        return self._lease or self._lost or self._free

    @property
    def is_held(self) -> bool:
        """Whether only this process may write, as far as it knows."""
        lease = self._lease
        return lease is not None and bool(lease.fence) and not self._leases.is_lost(lease)

    async def hold(self) -> bool:
        """Have the session for this process alone. True: others wrote meanwhile, what is in memory is old.

        Costs nothing while it is had. Raises SessionBusy naming who has it, StoreError.
        """
        had = self._lease
        if self.is_held:
            return False
        self._stale = self._stale or (had is not None and self._leases.is_lost(had))
        lease = await self._leases.take(self.session_id, self._free.holder)
        # Without a fence the store is in trouble, and nobody knows more than what is in memory.
        known = lease.fence == 0 or (had is not None and had.fence == 0)
        stale = self._stale or not (known or lease.last_seq == self.seen)
        self._lease, self._lost, self._stale = lease, None, False
        return stale

    def lose(self) -> None:
        """Someone else has, or had, the session."""
        self._lost, self._lease, self._stale = self._lease or self._lost, None, True

    async def release(self) -> None:
        """Let others have it. Does not raise: a lease that cannot be given back runs out."""
        lease, self._lease = self._lease, None
        if lease is None or not lease.fence:
            return
        with trio.move_on_after(RELEASE_SECONDS):
            try:
                await self._leases.release(lease)
            except StoreError:
                return


class LeasedStore:
    """A store for one opened session: what is written to that session is written under its lease."""

    def __init__(self, inner: Store, session_id: str, holder: Holder) -> None:
        self.leases: Leases = inner.leases
        self.checkpoints: Checkpoints = inner.checkpoints
        self.lease = SessionLease(inner.leases, session_id, holder)
        self._inner = inner
        self.noting = False

    async def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry],
        *,
        head: HeadChange = UNCHANGED,
        lease: Lease | None = None,
    ) -> None:
        """Raises LeaseLost, and SessionBusy when another process has the session."""
        mine = session_id == self.lease.session_id
        shown = self.lease.current if mine and lease is None else lease
        try:
            await self._inner.append(session_id, entries, head=head, lease=shown)
        except LeaseLost:
            self.lease.lose()
            raise
        if mine:
            self.lease.seen += len(entries)

    async def entries(self, session_id: str, *, after: int = 0, limit: int = 500) -> list[StoredEntry]:
        page = await self._inner.entries(session_id, after=after, limit=limit)
        if self.noting and page and session_id == self.lease.session_id:
            self.lease.seen = max(self.lease.seen, page[-1].seq)
        return page

    async def create_session(self, record: SessionRecord) -> None:
        await self._inner.create_session(record)

    async def session(self, session_id: str) -> SessionRecord | None:
        return await self._inner.session(session_id)

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> SessionPage:
        return await self._inner.list_sessions(cwd=cwd, cursor=cursor, limit=limit)

    async def position(self, session_id: str, key: str) -> int | None:
        return await self._inner.position(session_id, key)

    async def search(
        self, session_id: str, query: str, *, limit: int, before_turn: str | None = None
    ) -> list[Hit]:
        return await self._inner.search(session_id, query, limit=limit, before_turn=before_turn)

    async def delete_session(self, session_id: str) -> bool:
        """The session's own lease is in nobody's way."""
        if session_id == self.lease.session_id:
            await self.lease.release()
        return await self._inner.delete_session(session_id)

    async def fork_session(self, record: SessionRecord, source_id: str, *, up_to: int) -> None:
        await self._inner.fork_session(record, source_id, up_to=up_to)

    async def purge(self, older_than: str) -> int:
        return await self._inner.purge(older_than)

    def watch(self) -> AbstractAsyncContextManager[AsyncIterator[frozenset[str]]]:
        return self._inner.watch()

    async def aclose(self) -> None:
        """Nothing: the store belongs to all sessions."""
        await trio.lowlevel.checkpoint()


@contextmanager
def noting(store: Store) -> Iterator[None]:
    """What is read of a session meanwhile is what its conversation knows from then on."""
    if not isinstance(store, LeasedStore):
        yield
        return
    store.noting, store.lease.seen = True, 0
    try:
        yield
    finally:
        store.noting = False


_DEAD_STATES = "ZXx"


def new_holder(client: str = "") -> Holder:
    """A holder in this process. client: the program in front of it, as it calls itself."""
    pid = os.getpid()
    return Holder(new_id(), client, pid, _host(), _machine(), _started(pid))


def is_gone(holder: Holder) -> bool:
    """Whether the holder's process has ended for certain."""
    if sys.platform == "win32" or not holder.machine or holder.machine != _machine():
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it is there and belongs to somebody else
    started = _started(holder.pid)
    # Another start means that the number was given to another process since.
    return bool(holder.started and started != holder.started)


def named(holder: Holder) -> str:
    """The holder in a few words for a person."""
    return f"{holder.client or 'another window'} (process {holder.pid} on {holder.host or 'this computer'})"


@cache
def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


@cache
def _machine() -> str:
    """The running system and the namespace that our process id belongs to."""
    try:
        boot = read_text("/proc/sys/kernel/random/boot_id").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return _host()


def _started(pid: int) -> str:
    """When the process began, in a unit of the system's own; '' when that, or the process, is not known."""
    try:
        # The name, in brackets, may hold anything.
        state, *fields = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in _DEAD_STATES else fields[18]
