"""The way to a server by its kind: a child process, streamable HTTP, server-sent events."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
import trio
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from runtime.mcp.child_process import child
from runtime.mcp.connection_errors import Notes
from runtime.mcp.remote_tool import ServerTrouble
from runtime.mcp.settings import ServerSettings, Surroundings
from runtime.values.errors import ConfigError
from runtime.values.http_environment import transport

LONGEST_SILENCE = 300.0
"""Seconds that a stream of the server may stay silent, unless calls may take longer."""

Streams = tuple[Any, Any]


def opened(
    server: ServerSettings, surroundings: Surroundings, notes: Notes
) -> AbstractAsyncContextManager[Streams]:
    """The two streams of messages of the SDK. Raises ServerTrouble, OSError, errors of HTTP."""
    if server.kind == "stdio":
        return child(server, surroundings, notes)
    return _over_http(server, surroundings.env, notes)


@asynccontextmanager
async def _over_http(server: ServerSettings, env: Mapping[str, str], notes: Notes) -> AsyncIterator[Streams]:
    headers = _headers(server, env)
    # Reading the certificates takes a while.
    client = await trio.to_thread.run_sync(partial(_client, server, headers, notes))

    def made(headers: object = None, timeout: object = None, auth: object = None) -> httpx2.AsyncClient:
        return client

    if server.kind == "sse":
        way = sse_client(
            server.url,
            timeout=server.connect_timeout,
            sse_read_timeout=_silence(server),
            httpx_client_factory=made,
        )
        async with way as streams:
            yield streams
        return
    async with client, streamable_http_client(server.url, http_client=client) as streams:
        yield streams


def _client(server: ServerSettings, headers: Mapping[str, str], notes: Notes) -> httpx2.AsyncClient:
    async def seen(response: httpx2.Response) -> None:
        if response.request.method == "POST" or server.kind == "sse":
            notes.status = response.status_code if response.status_code >= httpx2.codes.BAD_REQUEST else 0

    return httpx2.AsyncClient(
        headers=dict(headers),
        timeout=httpx2.Timeout(server.connect_timeout, read=_silence(server)),
        event_hooks={"response": [seen]},
        transport=_transport(server.url),
    )


def _transport(url: str) -> httpx2.AsyncBaseTransport:
    try:
        return transport(url)
    except ConfigError as error:
        raise ServerTrouble(error.message, lasting=True) from error


def _silence(server: ServerSettings) -> float:
    return max(LONGEST_SILENCE, server.call_timeout)


def _headers(server: ServerSettings, env: Mapping[str, str]) -> dict[str, str]:
    if not server.bearer_env:
        return dict(server.headers)
    token = env.get(server.bearer_env, "")
    if not token:
        raise ServerTrouble(f"set the environment variable {server.bearer_env} to its token", lasting=True)
    return {**server.headers, "Authorization": f"Bearer {token}"}


def secrets_of(server: ServerSettings, env: Mapping[str, str]) -> tuple[str, ...]:
    """What must stand in no sentence: variables, headers and their parts, what an address carries."""
    passed = [env.get(name, "") for name in (*server.pass_env, server.bearer_env)]
    headers = [part for value in server.headers.values() for part in (value, *value.split())]
    return tuple(filter(None, (*server.env.values(), *passed, *headers, *_parts(server.url))))


def _parts(url: str) -> list[str]:
    try:
        split = urlsplit(url)
        return [url, split.query, split.username or "", split.password or ""]
    except ValueError:
        return [url]
