"""Wiring: settings, stores, providers and sessions of one process; the one place that picks them.

Knows the runtime's ports and who fills them; knows nothing of JSON-RPC. Everything is made, and imported,
on first use: start-up pays for nothing that the next answer does not need.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio

from acp_server.assembly.providers_and_stores import Providers, Stores
from acp_server.config.load import for_session, load_user_config
from acp_server.config.paths import here
from acp_server.config.settings import Options, SessionConfig
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import InvalidParams, ResourceNotFound
from runtime.values.ids_and_time import new_id, utc_now
from runtime.values.stored import SessionRecord, Store

if TYPE_CHECKING:
    from acp_server.acp.client import Edition
    from acp_server.app.open_sessions import Live
    from runtime.ports import Client, Provider
    from runtime.session.session import Session
    from schemas.acp.mcp import McpServer

CLOSE_SECONDS = 0.8
"""How long sessions get to end their turns when the process ends."""

ClientFactory = Callable[[Mapping[str, object], SessionConfig], "Client"]
"""From the parameters of `initialize` and the settings to the one who is told what happens."""


class Reserved(NamedTuple):
    """A stored session that nobody has used yet in this process. troubles: sentences to begin with.

    servers: the MCP servers that its client named.
    """

    record: SessionRecord
    config: SessionConfig
    troubles: tuple[str, ...] = ()
    servers: "tuple[McpServer, ...]" = ()


class App:
    """One process's sessions and what they share."""

    def __init__(self, options: Options, env: Mapping[str, str], client_factory: ClientFactory) -> None:
        self.env = env
        self.sessions: dict[str, Session] = {}
        self._reserved: dict[str, Reserved] = {}
        self._options = options
        self._client_factory = client_factory
        self.greeting: Mapping[str, object] = {}
        self.edition: Edition | None = None
        self._client: Client | None = None
        self._stores = Stores(self._trouble)
        self._providers = Providers(env)

    # ------------------------------------------------------------ for the connection

    def initialized(self, params: Mapping[str, object]) -> None:
        """`initialize` was answered; what the client can do is read when it is first needed."""
        self.greeting = params
        self._client = None

    def has_sessions(self) -> bool:
        """Whether a session is open on this connection."""
        return bool(self.sessions or self._reserved)

    async def aclose(self) -> None:
        """Cancel all turns, let them be recorded, close what is shared."""
        with trio.move_on_after(CLOSE_SECONDS):
            async with trio.open_nursery() as nursery:
                for session in self.sessions.values():
                    nursery.start_soon(session.close)
        await self._providers.aclose()
        await self._stores.aclose()

    # ------------------------------------------------------------ sessions

    async def new_session(
        self, cwd: Path, directories: Sequence[Path] = (), servers: "tuple[McpServer, ...]" = ()
    ) -> str:
        """The id of a stored, empty session for a folder. It is opened when it is first asked for.

        directories: more folders that its tools may use. servers: the MCP servers that its client named.
        """
        config = self.config(cwd)
        time = utc_now()
        record = SessionRecord(
            f"sess_{new_id()}", str(cwd), time, time, state=state_with(tuple(map(str, directories)))
        )
        since = self._heard()
        await self.store(config).create_session(record)
        troubles = tuple(self._stores.troubles[since:])
        self._reserved[record.session_id] = Reserved(record, config, troubles, servers)
        return record.session_id

    def config_of(self, session_id: str) -> SessionConfig:
        """The settings of a session that was just made. Raises ResourceNotFound once it is opened."""
        if session_id not in self._reserved:
            raise not_found(session_id)
        return self._reserved[session_id].config

    async def load_session(
        self,
        session_id: str,
        cwd: Path,
        directories: Sequence[Path] = (),
        servers: "tuple[McpServer, ...]" = (),
        *,
        quietly: bool = False,
    ) -> "Session":
        """A stored session, its history restored; one that is open already goes on being shared.

        directories: all folders that its tools may use beside its own. quietly: a trim that became due waits
        for the next turn, so that nothing is told now.
        Raises ResourceNotFound, and InvalidParams when the folder is not the session's own.
        """
        config = self.config(cwd)
        since = self._heard()
        record = await self.store(config).session(session_id)
        if record is None:
            raise not_found(session_id)
        if Path(record.cwd) != cwd:
            raise InvalidParams("Invalid params: cwd is not the folder that this session belongs to")
        if session_id in self.sessions or session_id in self._reserved:
            session = self.session(session_id)
        else:
            session = self._open(Reserved(record, config, servers=servers))
            await self.live.restore(session.conversation, quietly=quietly)
            self._tell(session, self._stores.troubles[since:])
            session = self.sessions.setdefault(session_id, session)
        await session.conversation.use_directories(directories)
        return session

    def session(self, session_id: str) -> "Session":
        """An open session. Raises ResourceNotFound."""
        reserved = self._reserved.pop(session_id, None)
        if reserved is not None:
            self.sessions[session_id] = self._open(reserved)
        try:
            return self.sessions[session_id]
        except KeyError:
            raise not_found(session_id) from None

    async def close_session(self, session_id: str) -> None:
        """End what runs and forget the session; what is stored stays. Raises ResourceNotFound."""
        if self._reserved.pop(session_id, None) is None:
            await self.session(session_id).close()
            self.sessions.pop(session_id, None)

    def _open(self, reserved: Reserved) -> "Session":
        record, config, troubles, servers = reserved
        client = self._client_of(record.session_id, config)
        session = self.live.open_session(
            record, config, self.store(config), client, self.provider, servers, self._window()
        )
        self._tell(session, troubles)
        return session

    def _client_of(self, session_id: str, config: SessionConfig) -> "Client":
        """Who is told what happens in a session: the one client there is."""
        if self._client is None:
            self._client = self._client_factory(self.greeting, config)
        return self._client

    def _window(self) -> str:
        """The client's name for people, '' if it gave none."""
        info = self.greeting.get("clientInfo" if self.edition is None else "info")
        names = (info.get("title"), info.get("name")) if isinstance(info, dict) else ()
        return next((name[:80] for name in names if isinstance(name, str) and name), "")

    @property
    def live(self) -> "Live":
        """The half of the server that an open session needs, imported at its first use."""
        from acp_server.app.open_sessions import Live

        return Live(self.env, self.edition)

    # ------------------------------------------------------------ what sessions share

    def config(self, cwd: Path) -> SessionConfig:
        """The settings for a folder, read anew: a file that was just mended counts. Raises ConfigError."""
        return for_session(load_user_config(self._options, self.env), cwd)

    def store(self, config: SessionConfig | None = None) -> Store:
        """The store that the settings name, opened once. Trouble with it is told to every open session."""
        return self._stores.get((config or self.config(Path(here()))).store)

    async def provider(self, settings: ProviderSettings) -> "Provider":
        """The provider that the settings describe, made once. Raises ConfigError."""
        return await self._providers.get(settings)

    def _trouble(self, message: str) -> None:
        for session_id in (*self.sessions, *self._reserved):
            self._tell(self.session(session_id), [message])

    def _tell(self, session: "Session", troubles: Sequence[str]) -> None:
        for message in troubles:
            self.live.tell(session.conversation, "Session store", message)

    def _heard(self) -> int:
        """How many of the troubles a session that is about to be opened need not be told."""
        return len(self._stores.troubles) if self.has_sessions() else 0


def state_with(directories: tuple[str, ...]) -> str:
    """The state of a new session's head, without loading the model of it."""
    return json.dumps({"directories": directories}, ensure_ascii=False) if directories else "{}"


def not_found(session_id: str) -> ResourceNotFound:
    """The error for a session that is not there, as clients look for it."""
    return ResourceNotFound(f"There is no session {session_id[:80]!r}.", data={"sessionId": session_id})
