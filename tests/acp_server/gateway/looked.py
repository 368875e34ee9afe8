"""A session over memory behind the API's routes: asked as a client asks, with no socket in between."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from acp_server.config.load import for_session, load_user_config
from acp_server.config.settings import Options, SessionConfig
from acp_server.gateway import serve
from acp_server.gateway.api import routes as api
from acp_server.gateway.unread_requests import refused
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.values.profiles import Profile
from runtime.values.stored import Store
from tests.support.fakes import EchoTool, ask, call, make_session, script

BASE = "http://127.0.0.1"


@dataclass
class FewSessions:
    """The part of the app that is looked at. open_sessions: those that live here."""

    held: Store
    sessions: dict[str, Session] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def store(self) -> Store:
        return self.held

    def config(self, cwd: Path) -> SessionConfig:
        return for_session(load_user_config(Options(), self.env), cwd)


@dataclass
class Desk:
    """A client of the API."""

    app: FewSessions
    http: httpx2.AsyncClient

    async def get(self, path: str, status: int = 200, **query: object) -> Any:
        answer = await self.http.get(path, params={name: str(value) for name, value in query.items()})
        assert answer.status_code == status, answer.text
        return answer.json()


def app_of(few: FewSessions) -> Starlette:
    """The routes with the gateway's own refusals."""
    state = cast(Any, SimpleNamespace(app=few))
    routes = [*api.routes(state), *serve.dashboard_routes(state)]
    return Starlette(routes=routes, exception_handlers={HTTPException: refused})


@asynccontextmanager
async def desk(
    store: Store | None = None, *sessions: Session, env: Mapping[str, str] | None = None
) -> AsyncIterator[Desk]:
    """The API over a store and some open sessions."""
    few = FewSessions(
        store or MemoryStore(), {session.session_id: session for session in sessions}, env or {}
    )
    transport = httpx2.ASGITransport(app=app_of(few))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE) as http:
        yield Desk(few, http)


async def talked(
    turns: int, profile: Profile | None = None, store: Store | None = None
) -> tuple[Session, Store]:
    """A session with that many turns of one call and one answer each."""
    provider = script({"calls": [call("x" * 300)]}, {"text": "y" * 300}, loop=True)
    session, _, kept = await make_session(
        provider, profile=profile or Profile(max_history_messages=5), tools=[EchoTool()], store=store
    )
    for number in range(1, turns + 1):
        await ask(session, f"prompt {number}")
    return session, kept
