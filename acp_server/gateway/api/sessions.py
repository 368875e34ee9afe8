"""Sessions as the API gives them: a page of the list, one session, what fills its context.

What all views look at is found here: a session as it is stored and, where it is open here, as it lives.
Knows the app's sessions and its store; changes neither.
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import trio

from acp_server.app.app import not_found
from acp_server.app.open_sessions import viewed
from acp_server.commands.context_commands import meter_of
from acp_server.gateway.api.turn_index import Indexes, TurnIndex
from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import readable_state
from runtime.history.request.meter import Meter, TurnLine
from runtime.session.session import State
from runtime.store.common.faults import decode, encode
from runtime.values.stored import SessionPage, SessionRecord, Store
from schemas.gateway_api import ContextAnswer, SessionAnswer, SessionLine, SessionList, TurnShare
from schemas.gateway_queries import SessionsQuery
from schemas.session_state import SessionState

if TYPE_CHECKING:
    from acp_server.app.app import App
    from runtime.session.session import Session

METERS = 32
"""Stored sessions whose meter is remembered."""
FRESH_SECONDS = 10.0
"""How long a remembered meter counts: settings and guidance files may change beside the session."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A session, looked at. live: it is open here, and knows all that is stored."""

    store: Store
    record: SessionRecord
    state: SessionState
    index: TurnIndex
    session: "Session | None" = None
    live: bool = False

    @property
    def running(self) -> bool:
        """Whether a turn runs in it here."""
        return self.session is not None and self.session.state in (State.RUNNING, State.CANCELLING)


@dataclass(frozen=True, slots=True)
class Metered:
    """The next request of a session. source: of which of its two forms."""

    meter: Meter
    source: Literal["live", "stored"]
    model: str
    profile: str
    calibrated: bool


class Looking:
    """Finds sessions for the views of one gateway."""

    def __init__(self, app: "App") -> None:
        self.app = app
        self._indexes = Indexes()
        self._meters: OrderedDict[str, tuple[object, float, Metered]] = OrderedDict()
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        """The store of the settings that the gateway was started with. Raises ConfigError."""
        if self._store is None:
            self._store = self.app.store()
        return self._store

    async def at(self, session_id: str) -> Seen:
        """A session. Raises ResourceNotFound, StoreError."""
        record = await self.store.session(session_id) if "\0" not in session_id else None
        if record is None:
            raise not_found(session_id)
        index = await self._indexes.of(self.store, session_id)
        session = self.app.sessions.get(session_id)
        state = readable_state(record.state) or SessionState()
        return Seen(self.store, record, state, index, session, _is_current(session, index))

    async def meter(self, seen: Seen) -> Metered:
        """What fills the session's next request. Raises StoreError, ConfigError."""
        if seen.session is not None and seen.live:
            return _metered(seen.session.conversation, "live")
        key, now = (seen.index.last, seen.record), trio.current_time()
        known = self._meters.get(seen.record.session_id)
        if known is not None and known[0] == key and now < known[1] + FRESH_SECONDS:
            return known[2]
        config = self.app.config(Path(seen.record.cwd))
        made = _metered(await viewed(seen.record, config, seen.store, self.app.env), "stored")
        self._meters[seen.record.session_id] = key, now, made
        self._meters.move_to_end(seen.record.session_id)
        if len(self._meters) > METERS:
            self._meters.popitem(last=False)
        return made


def _is_current(session: "Session | None", index: TurnIndex) -> bool:
    """Whether the open session knows all that is stored: another process may have gone on with it."""
    if session is None:
        return False
    if session.state is not State.IDLE or session.lease is None:
        return session.state is not State.CLOSED
    return session.lease.seen >= index.last


def _metered(talk: Conversation, source: Literal["live", "stored"]) -> Metered:
    keeper = talk.keeper
    return Metered(meter_of(talk), source, keeper.route.id, talk.setup.profile.name, keeper.calibration > 1.0)


LOOKED_AT = 2000
"""Heads that a search looks at for one page; the next page goes on behind them."""
PAGE = 200


async def session_list(looking: Looking, query: SessionsQuery) -> SessionList:
    """A page of sessions. A search may give fewer than it was asked for, or none, with more behind them."""
    if query.cwd is not None and "\0" in query.cwd:
        return SessionList(sessions=(), next_cursor=None)
    cursor = None if query.cursor is None else store_cursor(query.cursor)
    if query.q:
        page = await found(looking, query, query.q.casefold(), cursor)
    else:
        page = await looking.store.list_sessions(cwd=query.cwd, cursor=cursor, limit=query.limit)
    lines = tuple(line_of(looking, record) for record in page.sessions)
    behind = None if page.next_cursor is None else api_cursor(page.next_cursor)
    return SessionList(sessions=lines, next_cursor=behind)


async def found(looking: Looking, query: SessionsQuery, wanted: str, cursor: str | None) -> SessionPage:
    """The sessions whose title or folder has that text."""
    matches: list[SessionRecord] = []
    for _ in range(LOOKED_AT // PAGE):
        page = await looking.store.list_sessions(cwd=query.cwd, cursor=cursor, limit=PAGE)
        for record in page.sessions:
            if wanted in f"{record.title or ''}\n{record.cwd}".casefold():
                matches.append(record)
            if len(matches) == query.limit:
                last = record is page.sessions[-1] and page.next_cursor is None
                return SessionPage(tuple(matches), None if last else encode(record))
        cursor = page.next_cursor
        if cursor is None:
            break
    return SessionPage(tuple(matches), cursor)


def api_cursor(cursor: str) -> str:
    """The store's cursor as the API gives it: all that looks like one is a place in the list."""
    return ".".join(part.encode().hex() for part in decode(cursor) or ())


def store_cursor(cursor: str) -> str:
    """The way back."""
    updated_at, session_id = (
        bytes.fromhex(part).decode(errors="replace").replace("\0", "?").replace("\x1f", "?")
        for part in cursor.split(".")
    )
    return encode(SessionRecord(session_id, "", "", updated_at))


def line_of(looking: Looking, record: SessionRecord) -> SessionLine:
    """A session in the list."""
    session = looking.app.sessions.get(record.session_id)
    running = session is not None and session.state in (State.RUNNING, State.CANCELLING)
    state = readable_state(record.state)
    return SessionLine(
        session_id=record.session_id,
        title=record.title,
        cwd=record.cwd,
        created_at=record.created_at,
        updated_at=record.updated_at,
        open=session is not None,
        running=running,
        dropped_turns=0 if state is None else state.dropped_turns,
    )


async def session_answer(looking: Looking, seen: Seen) -> SessionAnswer:
    """One session."""
    state, index = seen.state, seen.index
    pins = [await index.number(seen.store, turn_id) for turn_id in state.pins]
    return SessionAnswer(
        **line_of(looking, seen.record).model_dump(),
        turns=len(index.prompts),
        entries=index.last,
        trims=len(index.notices),
        first_kept_turn=await first_kept(seen),
        pinned_turns=tuple(sorted(number for number in pins if number is not None)),
        goal=None if state.goal is None else state.goal.text,
        model=state.model or None,
        profile=state.profile or None,
        mode=state.mode or None,
    )


async def first_kept(seen: Seen) -> int:
    """The number of the oldest turn that the model still gets, held ones aside."""
    if not seen.state.dropped_turns:
        return 1
    return await seen.index.number(seen.store, seen.state.first_turn_id) or 1


async def context_answer(looking: Looking, seen: Seen) -> ContextAnswer:
    """What fills the next request."""
    found = await looking.meter(seen)
    meter = found.meter
    shares = [share(turn, await seen.index.number(seen.store, turn.turn_id)) for turn in meter.turns]
    state = seen.session.conversation.keeper.state if seen.session and seen.live else seen.state
    return ContextAnswer(
        session_id=seen.record.session_id,
        source=found.source,
        model=found.model,
        profile=found.profile,
        system=meter.system,
        tools=meter.tools,
        breadcrumb=meter.breadcrumb,
        notes=meter.notes,
        turns=tuple(shares),
        tool_rows=sum(turn.tools for turn in meter.turns),
        estimated=meter.estimated,
        used=meter.used,
        used_source="calibrated" if found.calibrated else "estimate",
        trims_above=meter.target,
        free=meter.free,
        window=meter.window if meter.window_known else None,
        dropped_turns=state.dropped_turns,
        saved_tokens=meter.saved,
    )


def share(turn: TurnLine, number: int | None) -> TurnShare:
    """A turn's part."""
    return TurnShare(
        turn=number,
        turn_id=turn.turn_id,
        tokens=turn.tokens,
        tool_tokens=turn.tools,
        collapsed=turn.collapsed,
        saved_tokens=turn.saved,
        pinned=turn.pinned,
        goal=turn.goal,
        leaves_next=turn.leaves_next,
    )
