"""Wiring: settings, store, provider, tools and sessions of one process; the one place that picks them.

Knows the runtime's ports and who fills them; knows nothing of JSON-RPC. Everything is made on first use:
start-up pays for nothing that a session does not need.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import trio

from acp_server.config.load import for_session, load_user_config
from acp_server.config.options import Options
from acp_server.config.settings import SessionConfig
from acp_server.setup import make_setup
from runtime.conversation import Conversation
from runtime.errors import InvalidParams, ResourceNotFound
from runtime.events import Noticed
from runtime.ids import new_id
from runtime.loading import read_state, restore
from runtime.ports import (
    Client,
    Provider,
    SessionRecord,
    Store,
)
from runtime.providers import catalog
from runtime.providers.settings import ProviderSettings
from runtime.session import Session
from runtime.setup import utc_now
from runtime.store.opening import open_store

CLOSE_SECONDS = 0.8
"""How long sessions get to end their turns when the process ends."""

log = logging.getLogger("wholeturn.app")

ClientFactory = Callable[[Mapping[str, object], SessionConfig], Client]
"""From the parameters of `initialize` and the settings to the one who is told what happens."""


class App:
    """One process's sessions and what they share."""

    def __init__(self, options: Options, env: Mapping[str, str], client_factory: ClientFactory) -> None:
        self.sessions: dict[str, Session] = {}
        self._options = options
        self.env = env
        self._client_factory = client_factory
        self._capabilities: Mapping[str, object] = {}
        self._client: Client | None = None
        self._store: Store | None = None
        self._providers: dict[str, tuple[ProviderSettings, Provider]] = {}
        self._lock = trio.Lock()

    # ------------------------------------------------------------ for the connection

    def initialized(self, params: Mapping[str, object]) -> None:
        """`initialize` was answered; what the client can do is read when it is first needed."""
        self._capabilities = params
        self._client = None

    def has_sessions(self) -> bool:
        """Whether a session is open on this connection."""
        return bool(self.sessions)

    async def aclose(self) -> None:
        """Cancel all turns, let them be recorded, close what is shared."""
        with trio.move_on_after(CLOSE_SECONDS):
            async with trio.open_nursery() as nursery:
                for session in self.sessions.values():
                    nursery.start_soon(session.close)
        for _, provider in self._providers.values():
            await provider.aclose()
        if self._store is not None:
            await self._store.aclose()

    # ------------------------------------------------------------ sessions

    def session(self, session_id: str) -> Session:
        """An open session. Raises ResourceNotFound."""
        try:
            return self.sessions[session_id]
        except KeyError:
            raise not_found(session_id) from None

    async def new_session(self, cwd: Path) -> Session:
        """A stored, empty session for a folder."""
        config = self.config(cwd)
        store = self.store(config)
        time = utc_now()
        record = SessionRecord(f"sess_{new_id()}", str(cwd), time, time)
        await store.create_session(record)
        return self._open(record, config, store)

    async def load_session(self, session_id: str, cwd: Path) -> Session:
        """A stored session, its history restored; one that is open already goes on being shared.

        Raises ResourceNotFound, and InvalidParams when the folder is not the session's own.
        """
        config = self.config(cwd)
        store = self.store(config)
        record = await store.session(session_id)
        if record is None:
            raise not_found(session_id)
        if Path(record.cwd) != cwd:
            raise InvalidParams("Invalid params: cwd is not the folder that this session belongs to")
        if session_id in self.sessions:
            return self.sessions[session_id]
        session = self._open(record, config, store)
        try:
            await restore(session.conversation)
        except BaseException:
            self.sessions.pop(session_id, None)
            raise
        return session

    async def close_session(self, session_id: str) -> None:
        """End what runs and forget the session; what is stored stays. Raises ResourceNotFound."""
        session = self.session(session_id)
        await session.close()
        self.sessions.pop(session_id, None)

    def _open(self, record: SessionRecord, config: SessionConfig, store: Store) -> Session:
        roots = (Path(record.cwd),)
        setup = make_setup(config, self.provider)
        talk = Conversation(
            record.session_id,
            roots,
            setup,
            store,
            self.client(config),
            state=read_state(record.state),
            title=record.title,
        )
        talk.pending += [Noticed("warning", "Configuration", text) for text in config.warnings]
        session = self.sessions[record.session_id] = Session(talk)
        return session

    # ------------------------------------------------------------ what sessions share

    def config(self, cwd: Path) -> SessionConfig:
        """The settings for a folder, read anew: a file that was just mended counts. Raises ConfigError."""
        return for_session(load_user_config(self._options, self.env), cwd)

    def client(self, config: SessionConfig) -> Client:
        """The one who is told what happens."""
        if self._client is None:
            self._client = self._client_factory(self._capabilities, config)
        return self._client

    def store(self, config: SessionConfig | None = None) -> Store:
        """The store, opened once. Trouble with it is told to every open session."""
        if self._store is None:
            where = (config or self.config(Path.cwd())).store
            self._store = open_store(where, on_trouble=self._trouble)
        return self._store

    async def provider(self, settings: ProviderSettings) -> Provider:
        """The provider that the settings describe, made once. Raises ConfigError."""
        async with self._lock:
            known = self._providers.get(settings.name)
            if known is None or known[0] != settings:
                made = await trio.to_thread.run_sync(catalog.create, settings)
                known = self._providers[settings.name] = settings, made
            return known[1]

    async def warm(self, session: Session) -> None:
        """Import what the first prompt needs, while the user types."""
        if session.conversation.setup.kind:
            await trio.to_thread.run_sync(catalog.warm, session.conversation.setup.kind)

    def _trouble(self, message: str) -> None:
        log.warning("%s", message)
        for session in self.sessions.values():
            session.conversation.pending.append(Noticed("warning", "Session store", message))


def not_found(session_id: str) -> ResourceNotFound:
    """The error for a session that is not there, as clients look for it."""
    return ResourceNotFound(f"There is no session {session_id[:80]!r}.", data={"sessionId": session_id})
