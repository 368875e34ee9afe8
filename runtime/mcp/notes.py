"""What was noticed of a connection, for the sentence that tells why it failed; the secrets to leave out."""

from dataclasses import dataclass, field

import trio

from runtime.mcp.text import one_line, without

TAIL = 4096
"""Bytes of a child's stderr that are kept."""


@dataclass(slots=True)
class Notes:
    """secrets: never told. garbage: what came instead of a message. status: of the last refused HTTP request.

    exit: how the child ended, '' while it runs. last_words: set when all that it wrote was heard.
    """

    name: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    garbage: str = ""
    status: int = 0
    exit: str = ""
    last_words: trio.Event = field(default_factory=trio.Event)
    _tail: bytes = b""

    def heard(self, data: bytes) -> None:
        """The child wrote this to stderr."""
        tail = self._tail + data
        if len(tail) > TAIL:
            # From the beginning of a line: half a secret would not be known as one.
            tail = tail[-TAIL:].partition(b"\n")[2]
        self._tail = tail

    def ended_with(self, status: int | None) -> None:
        """The child has ended."""
        killed = status is not None and status < 0
        how = f"was ended by signal {-(status or 0)}" if killed else f"ended with exit status {status}"
        self.exit = f"the process {how}"
        self.last_words.set()

    def clean(self, text: str, limit: int = 200) -> str:
        """Foreign text on one line, without secrets."""
        return one_line(without(text, self.secrets), limit)

    def told(self, sentence: str) -> str:
        """The sentence with what else is known, on one line, without secrets."""
        lines = self._tail.decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        more = [f'it said "{self.clean(last)}"'] if last else []
        more += [f'it wrote "{self.clean(self.garbage, 80)}", which is no message'] if self.garbage else []
        return self.clean("; ".join((sentence, *more)), 600)
