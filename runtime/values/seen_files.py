"""Which files a session has read or written, as they were then. Touches no file and knows no tool.

A tool that changes a file compares: what changed behind the session's back is not overwritten.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import trio

_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file at a moment. digest: of its text, '' when not all of it was read; size: bytes, -1 if unknown."""

    digest: str = ""
    size: int = -1
    mtime_ns: int = -1

    def still(self, now: "Stamp") -> bool:
        """Whether the file is what it was: by its text, by size and time where a text is not known."""
        if self.digest and now.digest:
            return self.digest == now.digest
        return (self.size, self.mtime_ns) == (now.size, now.mtime_ns)


class SeenFiles:
    """The newest few thousand files of one session, by resolved path.

    changing: held from the look at a file to the end of its change. Calls of one reply run side by side, and
    the second of two edits must see what the first one made.
    """

    def __init__(self) -> None:
        self.changing = trio.Lock()
        self._stamps: dict[Path, Stamp] = {}
        self._missed: set[Path] = set()

    def note(self, path: Path, stamp: Stamp) -> None:
        """The session knows the file as it is in this moment."""
        self._stamps.pop(path, None)
        self._stamps[path] = stamp
        if len(self._stamps) > _KEPT:
            del self._stamps[next(iter(self._stamps))]

    def get(self, path: Path) -> Stamp | None:
        """What the session knows; None when it has not seen the file."""
        return self._stamps.get(path)

    def note_miss(self, path: Path, *, missed: bool) -> None:
        """Whether the last edit of the file found its text there."""
        (self._missed.add if missed else self._missed.discard)(path)

    def has_missed(self, path: Path) -> bool:
        """Whether the last edit of the file did not."""
        return path in self._missed


class Digest:
    """The digest of a text that comes in pieces. CRLF counts as LF: editors hand over either."""

    def __init__(self) -> None:
        self._made = sha256()
        self._held = ""

    def feed(self, piece: str) -> None:
        """The next piece."""
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        text = text[: len(text) - len(self._held)].replace("\r\n", "\n")
        self._made.update(text.encode("utf-8", "surrogatepass"))

    def value(self) -> str:
        """Of all that was given. Nothing may be fed afterwards."""
        self._made.update(self._held.encode())
        return self._made.hexdigest()


def digest(text: str) -> str:
    """The digest of a whole text."""
    made = Digest()
    made.feed(text)
    return made.value()
