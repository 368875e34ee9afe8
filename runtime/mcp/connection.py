"""Connections to MCP servers by the SDK. The heavy half of the package: importing it takes about a second.

A connection is entered and left by one task, its owner. Calls come from other tasks and run in the
connection's own, so that a cancelled caller goes on at once while the server is still being told.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import trio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from mcp import types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, FileUrl

from runtime.mcp.connection_errors import Notes, explained, is_end
from runtime.mcp.remote_tool import Connect, Link, Offer, RemoteTool, ServerTrouble
from runtime.mcp.settings import ServerSettings, Surroundings
from runtime.mcp.transports import opened, secrets_of
from schemas.version import __version__

MOST_PAGES = 100
MOST_TOOLS = 5000
"""Of one server, taken in before the choice of those that are offered."""
US = types.Implementation(name="wholeturn", title="Wholeturn", version=__version__)
CHANGES = types.ToolListChangedNotification | types.ResourceListChangedNotification

T = TypeVar("T")

# Its lines quote what servers sent; what matters of them is told in our own words.
logging.getLogger("mcp").setLevel(logging.CRITICAL)
log = logging.getLogger("wholeturn.mcp")


def connect(surroundings: Surroundings) -> Connect:
    """How servers of a session are connected to."""
    return partial(_connection, surroundings)


@asynccontextmanager
async def _connection(
    surroundings: Surroundings, server: ServerSettings, wake: Callable[[], None]
) -> AsyncIterator[Link]:
    notes = Notes(server.name, secrets_of(server, surroundings.env))
    limit = trio.CancelScope(deadline=trio.current_time() + server.connect_timeout)
    try:
        with limit:
            async with opened(server, surroundings, notes) as (read, write):
                dispatcher = _Watched(read, write)
                async with _session(dispatcher, surroundings, wake) as session:
                    await _negotiate(session)
                    limit.deadline = math.inf
                    async with trio.open_nursery() as nursery:
                        link = SdkLink(server, session, notes, wake, nursery)
                        dispatcher.at_end = link.closed
                        nursery.start_soon(_watch_changes, session, wake)
                        try:
                            yield link
                        finally:
                            # Before the nursery is closed: nobody may start a request in it then.
                            link.closed()
                            nursery.cancel_scope.cancel()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this server's trouble
        raise explained(error, notes) from None
    except BaseExceptionGroup as group:
        # It is being closed: what else went wrong meanwhile matters to nobody.
        raise (group.split(Exception)[1] or group) from None
    if limit.cancelled_caught:
        raise ServerTrouble(notes.told(f"it did not answer within {server.connect_timeout:g} s"))


class _Watched(JSONRPCDispatcher[Any]):
    """Tells when nothing more can come."""

    at_end: Callable[[], None] | None = None

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            if self.at_end is not None:
                self.at_end()


def _session(dispatcher: _Watched, surroundings: Surroundings, wake: Callable[[], None]) -> ClientSession:
    async def heard(message: IncomingMessage) -> None:
        if isinstance(message, CHANGES):
            wake()

    async def roots(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(
            roots=[types.Root(uri=FileUrl(root.as_uri()), name=root.name) for root in surroundings.roots()]
        )

    return ClientSession(
        dispatcher=dispatcher, message_handler=heard, list_roots_callback=roots, client_info=US
    )


async def _negotiate(session: ClientSession) -> None:
    """The handshake that all servers know but the newest; those say so."""
    try:
        await session.initialize()
    except MCPError as refused:
        if refused.code not in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND):
            raise
        await session.discover()


async def _watch_changes(session: ClientSession, wake: Callable[[], None]) -> None:
    """The newest protocol tells of changes only to those who listen."""
    if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return
    try:
        async with listen(session, tools_list_changed=True, resources_list_changed=True) as events:
            async for _ in events:
                wake()
    except (MCPError, SubscriptionLost, TimeoutError) as error:
        log.debug("an MCP server does not tell of changes: %s", error)


@dataclass(slots=True, eq=False)
class _Asked:
    """A request under way. result: of the SDK, None when it failed or was given up."""

    done: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    result: BaseModel | None = None
    error: Exception | None = None


class SdkLink:
    """`runtime.mcp.remote_tool.Link` over a session of the SDK."""

    def __init__(
        self,
        server: ServerSettings,
        session: ClientSession,
        notes: Notes,
        wake: Callable[[], None],
        nursery: trio.Nursery,
    ) -> None:
        self._server = server
        self._session = session
        self._notes = notes
        self._wake = wake
        self._nursery = nursery
        self._ended = ""

    @property
    def ended(self) -> str:
        return self._ended

    def closed(self) -> None:
        """The connection is of no more use."""
        self._ended = self._ended or self._notes.told(self._notes.exit or "the connection was closed")
        self._wake()

    async def offer(self) -> Offer:
        capabilities = self._session.server_capabilities
        if capabilities is None:
            return Offer()
        found: dict[str, RemoteTool] = {}
        if capabilities.tools is not None:
            for tool in await self._pages(self._session.list_tools, lambda page: page.tools):
                found.setdefault(tool.name, _remote(tool))
        return Offer(tuple(found.values()), resources=capabilities.resources is not None)

    async def call(self, tool: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        ask = partial(self._session.call_tool, tool, dict(arguments))
        return _plain(await self._ask(ask, self._server.call_timeout))

    async def resources(self) -> tuple[Mapping[str, object], ...]:
        found = await self._pages(self._session.list_resources, lambda page: page.resources)
        try:
            list_ = self._session.list_resource_templates
            found += await self._pages(list_, lambda page: page.resource_templates)
        except ServerTrouble as trouble:
            log.debug("MCP server %s has no templates: %s", self._server.name, trouble)
        return tuple(_plain(item) for item in found)

    async def read(self, uri: str) -> Mapping[str, object]:
        return _plain(await self._ask(partial(self._session.read_resource, uri), self._server.call_timeout))

    async def _pages(
        self, list_: Callable[..., Awaitable[Any]], items: Callable[[Any], list[Any]]
    ) -> list[Any]:
        """All items of a list that comes in pages; a server that never ends is cut off."""
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            page: Any = await self._ask(partial(list_, params=params), self._server.connect_timeout)
            found += items(page)
            if page.next_cursor in (None, "", cursor) or len(found) >= MOST_TOOLS:
                break
            cursor = page.next_cursor
        return found[:MOST_TOOLS]

    async def _ask(self, ask: Callable[[], Awaitable[BaseModel]], seconds: float) -> BaseModel:
        """The answer. Cancelled or too late, the request is given up in the background."""
        if self._ended:
            raise ServerTrouble(self._ended)
        asked = _Asked()
        self._nursery.start_soon(self._work, ask, asked)
        try:
            with trio.move_on_after(seconds) as limit:
                await asked.done.wait()
        finally:
            asked.scope.cancel()
        if asked.result is not None:
            return asked.result
        if asked.error is not None:
            raise self._trouble(asked.error)
        late = f"the MCP server did not answer within {seconds:g} s"
        raise ServerTrouble(late if limit.cancelled_caught else self._ended or "the connection was closed")

    async def _work(self, ask: Callable[[], Awaitable[BaseModel]], asked: _Asked) -> None:
        try:
            with asked.scope:
                asked.result = await ask()
        except Exception as error:  # noqa: BLE001 - handed to the caller, who explains it
            asked.error = error
        finally:
            asked.done.set()

    def _trouble(self, error: Exception) -> ServerTrouble:
        trouble = explained(error, self._notes)
        if is_end(error, self._notes):
            self._ended = trouble.message
            self._wake()
        return trouble


def _remote(tool: types.Tool) -> RemoteTool:
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None) or tool.name
    looks = bool(hints and hints.read_only_hint)
    return RemoteTool(tool.name, title, tool.description or "", tool.input_schema, looks)


def _plain(value: BaseModel) -> Mapping[str, object]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
