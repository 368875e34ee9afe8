"""The end of an output that may have none: the newest bytes, as text that can be read. Pure."""

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Tail:
    """Keeps the last `limit` bytes, and counts all."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._kept = bytearray()

    def feed(self, data: bytes | bytearray) -> None:
        """The next bytes."""
        self.total += len(data)
        self._kept += data
        # Cut now and then, not each time: moving the rest costs as much as the rest is long.
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]

    @property
    def lost(self) -> int:
        """How many bytes at the beginning are not in `text()`."""
        return max(0, self.total - self._limit)

    def text(self, limit: int | None = None) -> str:
        """The last bytes as text, whole lines if possible. limit: fewer of them."""
        most = min(self._limit, limit or self._limit)
        data = bytes(self._kept[-most:])
        if self.total > most:
            line = data.find(b"\n") + 1
            data = data[line:] if 0 < line <= len(data) // 2 else data
        return readable(data.decode("utf-8", "replace"))


def readable(text: str) -> str:
    """Without what only a terminal can show: colours, lines that were overwritten, control characters."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    # What stands before a return was written over, unless nothing came behind it.
    return _CONTROLS.sub("", "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
