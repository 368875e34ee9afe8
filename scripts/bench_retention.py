"""What keeping history bounded costs, and how much of each request a prompt cache can serve.

Works on `runtime.history` alone: no process, no network. Sessions that are compared take turns, so noise
hits both; what is timed is one turn's work, from the prompt's row to the closed turn.
"""

import time
from dataclasses import replace
from itertools import count

from bench_rig import Rig
from bench_table import Row as Line
from bench_table import median
from mock_text import prose
from runtime.history.live.history import History
from runtime.history.request.compose import Composed, compose
from runtime.providers.openai_chat.request import CODEC, BodyShape, BodyWriter
from runtime.values.model import ModelRequest
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row, ToolCall

SYSTEM = "You are a careful assistant."
ROUTE = Route(provider="bench", model="bench", context_window=None)
WIDE = Profile(max_history_messages=100_000, max_context_tokens=10_000_000)


class Session:
    """A history that grows by turns, as in the loop. text: characters of a row; calls: tool rounds."""

    def __init__(self, profile: Profile, *, text: int = 200, calls: int = 0) -> None:
        self.profile, self.calls = profile, calls
        self.text = prose(text, 1)
        self.history = History([SYSTEM])
        self.requests: list[Composed] = []
        self._serial = count(1)

    def _compose(self) -> None:
        composed = compose(self.history, self.profile, ROUTE)
        self.history = composed.history
        self.requests = [composed]

    def turn(self) -> None:
        """One turn: a request before each model call, then the reply."""
        number = next(self._serial)
        self.history.open_turn(f"t{number}", Row("user", f"{number} {self.text}", origin="user"))
        self._compose()
        for index in range(self.calls):
            call = ToolCall(f"call-{number}-{index}", "read_file", '{"path":"notes.txt"}')
            asked = Row("assistant", "", tool_calls=(call,))
            self.history.append([asked, Row("tool", self.text, tool_call_id=call.id)])
            self._compose()
        self.history.append([Row("assistant", f"{number} {self.text}")])
        self.history.close_turn()

    def grow(self, rows: int) -> None:
        """As many turns as make that many rows."""
        for _ in range(rows // (2 + 2 * self.calls)):
            self.turn()


def milliseconds(session: Session) -> float:
    """The time of its next turn."""
    begun = time.perf_counter()
    session.turn()
    return 1e3 * (time.perf_counter() - begun)


def long_and_short(rows: int) -> list[Line]:
    """A turn's work in a session of very many rows beside one of 1,000, both keeping the same."""
    profile = Profile(max_history_messages=50, max_context_tokens=12_000, trim_slack_ratio=0.2)
    sessions = {size: Session(profile, calls=1) for size in (rows, 1_000)}
    seen: dict[int, list[float]] = {size: [] for size in sessions}
    for size, session in sessions.items():
        session.grow(size)
    for _ in range(500):
        for size, session in sessions.items():
            seen[size].append(milliseconds(session))
    value, baseline = (median(seen[size]) for size in (rows, 1_000))
    return [Line(f"history of a turn, {rows:,} rows", value, baseline, "1,000 rows", bound=1.5)]


def trim_ms(turns: int, kept: int) -> float:
    """The time of one request that drops all turns but `kept`, less that of one which drops none."""
    session = Session(WIDE)
    for number in range(turns):
        session.history.open_turn(f"t{number}", Row("user", session.text, origin="user"))
        session.history.append([Row("assistant", session.text)])
        session.history.close_turn()
    profile = replace(WIDE, max_history_messages=kept)
    seen = []
    for _ in range(15):
        begun = time.perf_counter()
        compose(session.history, profile, ROUTE)
        seen.append(1e3 * (time.perf_counter() - begun))
    return median(seen)


def trims() -> list[Line]:
    """A trim ten times as large takes ten times as long at most."""
    kept = 200
    none, some, many = (trim_ms(kept + dropped, kept) for dropped in (0, 1_000, 10_000))
    return [
        Line("a trim of 10,000 turns", many - none, 10 * (some - none), "10 x 1,000 turns", bound=1.5),
        Line("  no trim at all", none),
    ]


def body_ms(writer: BodyWriter, composed: Composed) -> float:
    """The time of building the body."""
    request = ModelRequest("bench", composed.segments)
    begun = time.perf_counter()
    writer.body(request)
    return 1e3 * (time.perf_counter() - begun)


def bodies() -> list[Line]:
    """Building a body of 200 kept turns, the first time and with one more row."""
    session, writer = Session(WIDE, text=2_000), BodyWriter(BodyShape())
    session.grow(400)
    session.history.open_turn("last", Row("user", session.text, origin="user"))
    first = compose(session.history, WIDE, ROUTE)
    whole = body_ms(writer, first)
    history = first.history
    fresh_rows, again = [], []
    for number in range(1, 21):
        history.append([Row("assistant", f"{number} {session.text}")])
        composed = compose(history, WIDE, ROUTE)
        history = composed.history
        fresh_rows.append(sum(len(part.rows) for part in composed.segments if CODEC not in part.encoded))
        again.append(body_ms(writer, composed))
    return [
        Line("rows encoded for 1 new row", median(fresh_rows), len(first.rows()), "rows in all", unit=""),
        Line("  time of that body", median(again), whole, "all rows new"),
    ]


def outside_prefix(slack: float, calls: int) -> float:
    """Percent of the sent bytes that do not stand, byte for byte, at the start of the request before."""
    profile = Profile(max_history_messages=1_000, max_context_tokens=32_000, trim_slack_ratio=slack)
    session, writer = Session(profile, text=600, calls=calls), BodyWriter(BodyShape())
    before, sent, common = b"", 0, 0
    for _ in range(500):
        session.turn()
        body = writer.body(ModelRequest("bench", session.requests[-1].segments))
        sent += len(body)
        common += shared_prefix(before, body)
        before = body
    return 100 * (1 - common / sent)


def shared_prefix(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def prefixes() -> list[Line]:
    """How much a prompt cache cannot serve, with slack and without, plain and with a tool round a turn."""
    plain, tight = outside_prefix(0.2, 0), outside_prefix(0.0, 0)
    tools, tight_tools = outside_prefix(0.2, 1), outside_prefix(0.0, 1)
    return [
        Line("sent outside the prefix, slack 0.2", plain, 10.0, "allowed", unit="%", bound=1),
        Line("  beside slack 0", plain, tight, "slack 0", unit="%"),
        Line("  with a tool round a turn", tools, tight_tools, "slack 0", unit="%"),
    ]


def section(rig: Rig) -> list[Line]:
    """All rows; the rig only says whether to be quick."""
    rows = 20_000 if rig.quick else 100_000
    return [*long_and_short(rows), *trims(), *bodies(), *prefixes()]
