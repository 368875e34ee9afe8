"""Lines to a stream, first in, first out. Knows nothing of what the lines say.

One task writes; all others only queue, so a line is never cut by another, nor by a cancellation.
"""

from collections import deque
from typing import Final

import trio

HIGH_WATER: Final = 4 * 1024 * 1024
"""Queued bytes from which those who can wait are made to wait."""
LINGER: Final = 0.008
"""Seconds that a notification may wait for others: far below what a reader of text could notice."""
_BATCH: Final = 256 * 1024
_FAIR: Final = 64


class LineWriter:
    """A queue of lines and the loop that empties it. `run` must be started once."""

    def __init__(self, stream: trio.abc.SendStream, *, high_water: int = HIGH_WATER) -> None:
        self._stream = stream
        self._high_water = high_water
        self._lines: deque[bytes] = deque()
        self._queued = 0
        self._over = False
        self._hurry = False
        self._news = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()
        self._finished = trio.Event()
        # Shielded: a cancelled send could leave half a line, and the next one would be glued to it.
        self._scope = trio.CancelScope(shield=True)

    def put(self, line: bytes) -> None:
        """Queue a line without waiting. After the end it is dropped: nobody is there to read it."""
        self._add(line, hurry=True)

    def put_lazily(self, line: bytes) -> None:
        """The same for a line that may wait LINGER seconds for company."""
        self._add(line, hurry=False)

    def _add(self, line: bytes, *, hurry: bool) -> None:
        if self._over:
            return
        self._lines.append(line)
        self._queued += len(line)
        self._hurry = self._hurry or hurry or self._queued >= _BATCH
        if self._news and (self._hurry or len(self._lines) == 1):
            self._news.unpark()

    async def put_when_room(self, line: bytes) -> None:
        """Queue a line that may wait for company; itself waiting first while the reader is far behind."""
        while self._queued > self._high_water:
            await self._room.park()
        # A full checkpoint costs more than the line; now and then is enough to let others run.
        if len(self._lines) % _FAIR == _FAIR - 1:
            await trio.lowlevel.checkpoint()
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        self.put_lazily(line)

    async def run(self) -> None:
        """Write until `finish` has been called or the reader has gone."""
        try:
            with self._scope:
                await self._write()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self._over = True
            self._lines.clear()
            self._queued = 0
            self._room.unpark_all()
            self._finished.set()

    async def finish(self, seconds: float) -> bool:
        """Take no more lines, and wait so long for those that are queued. False: given up, some are lost.

        Not hurried by a cancellation from outside.
        """
        self._over = self._hurry = True
        self._news.unpark()
        with trio.move_on_after(seconds, shield=True):
            await self._finished.wait()
        # Whoever does not read has no use for a whole line either.
        self._scope.cancel()
        return self._finished.is_set()

    async def _write(self) -> None:
        while True:
            while not self._lines:
                if self._over:
                    return
                await self._news.park()
            if not self._hurry:
                await self._linger()
            batch = self._batch()
            self._hurry = self._over or bool(self._lines)
            await self._stream.send_all(batch)
            if self._queued <= self._high_water // 2:
                self._room.unpark_all()

    async def _linger(self) -> None:
        """Each write wakes the client, which costs more than the line: let those that follow at once join."""
        with trio.move_on_after(LINGER):
            while not self._hurry:
                await self._news.park()

    def _batch(self) -> bytes:
        batch: list[bytes] = []
        size = 0
        while self._lines and size < _BATCH:
            line = self._lines.popleft()
            batch.append(line)
            size += len(line)
        self._queued -= size
        return b"".join(batch)
