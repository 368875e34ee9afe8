"""Why a connection failed, as one sentence without secrets, from what was raised and what was noticed of it.

Knows the exceptions of the SDK and of HTTP.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx2
import trio
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from runtime.mcp.remote_tool import ServerTrouble, one_line, without

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


REFUSED = (401, 403)
"""HTTP statuses that a second try does not change."""


def explained(error: BaseException, notes: Notes) -> ServerTrouble:
    """The first of the group's errors that says something; our own is told as it is."""
    found = list(_leaves(error))
    ours = next((one for one in found if isinstance(one, ServerTrouble)), None)
    if ours is not None:
        return ServerTrouble(notes.told(ours.message), lasting=ours.lasting)
    told = next((one for one in found if not isinstance(one, trio.Cancelled)), error)
    sentence = next((write for kind, write in _SENTENCES if isinstance(told, kind)), _unknown)(told, notes)
    lasting = notes.status in REFUSED or isinstance(told, httpx2.InvalidURL | httpx2.UnsupportedProtocol)
    return ServerTrouble(notes.told(sentence), lasting=lasting)


def is_end(error: Exception, notes: Notes) -> bool:
    """Whether the connection is of no more use after it: it is closed, or the server forgot the session."""
    return isinstance(error, MCPError) and (error.code == CONNECTION_CLOSED or notes.status == 404)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _answered(error: BaseException, notes: Notes) -> str:
    assert isinstance(error, MCPError)
    if error.code == CONNECTION_CLOSED:
        return notes.exit or "the connection was closed"
    if notes.status in REFUSED:
        return f"it refused the access (HTTP {notes.status})"
    if error.code == REQUEST_TIMEOUT:
        return "it did not answer in time"
    status = f", HTTP {notes.status}" if notes.status else ""
    return f"it answered with the error {error.code}{status}: {notes.clean(error.message)}"


def _invalid(error: BaseException, notes: Notes) -> str:
    assert isinstance(error, ValidationError)
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"its answer does not follow the protocol ({one_line(place, 80)}: {one_line(fault['msg'], 80)})"


def _refused(error: BaseException, notes: Notes) -> str:
    assert isinstance(error, httpx2.HTTPStatusError)
    return f"it answered with HTTP {error.response.status_code}"


def _unknown(error: BaseException, notes: Notes) -> str:
    return f"{type(error).__name__}: {notes.clean(str(error))}"


Kinds = type[BaseException] | tuple[type[BaseException], ...]

_SENTENCES: tuple[tuple[Kinds, Callable[[BaseException, Notes], str]], ...] = (
    (MCPError, _answered),
    (ValidationError, _invalid),
    ((httpx2.InvalidURL, httpx2.UnsupportedProtocol), lambda error, notes: "its address cannot be used"),
    (httpx2.HTTPStatusError, _refused),
    ((httpx2.TimeoutException, trio.TooSlowError), lambda error, notes: "it did not answer in time"),
    (httpx2.TransportError, lambda error, notes: f"it cannot be reached ({type(error).__name__})"),
)
