"""What the views look at: one session as it is stored and, where it is open here, as it lives.

Knows the app's sessions and its store; changes neither.
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import trio

from acp_server.app import not_found
from acp_server.context_commands import meter_of
from acp_server.gateway.turn_index import Indexes, TurnIndex
from acp_server.viewing import viewed
from runtime.conversation import Conversation
from runtime.history.meter import Meter
from runtime.loading import readable_state
from runtime.states import State
from runtime.stored import SessionRecord, Store
from schemas.session_state import SessionState

if TYPE_CHECKING:
    from acp_server.app import App
    from runtime.session import Session

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
