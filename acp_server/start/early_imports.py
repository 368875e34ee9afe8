"""What opening a stored session needs is imported while nobody waits, between the client's requests.

An editor starts its agent when it opens and loads a session a moment later, when the person asks for it. The
pieces are small, so that a request that comes meanwhile waits for one of them at most. Knows no session.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from operator import attrgetter

import trio

QUIET = 0.15
"""Seconds without a request before it begins: a client that asks at once is not held up by this."""
PAUSE = 0.005
"""Seconds between two pieces."""

MODULES = (
    "runtime.values.events",
    "runtime.values.rows",
    "runtime.values.model",
    "runtime.ports",
    "schemas.session_state",
    "runtime.history.live.history",
    "runtime.history.rows.structured",
    "runtime.history.live.turn",
    "runtime.history.request.meter",
    "runtime.history.request.compose",
    "runtime.permission.rules",
    "runtime.setup.session_setup",
    "schemas.transcript",
    "importlib.metadata",
    "runtime.transcript.usage",
    "runtime.history.request.recovery",
    "runtime.trimming.model_context",
    "runtime.conversation.conversation",
    "runtime.store.sqlite.store",
    "runtime.store.resilient.store",
    "acp_server.config.files",
    "acp_server.config.combine",
    "acp_server.config.files",
    "acp_server.commands.commands",
    "acp_server.commands.session_commands",
    "runtime.session.session",
    "schemas.acp.initialize",
    "acp_server.acp.client",
    "acp_server.workspace.linked_files",
    "acp_server.assembly.session_setup",
    "acp_server.app.open_sessions",
)
"""In the order in which a session's opening would import them."""


MODELS: tuple[tuple[str, str, *tuple[object, ...]], ...] = (
    ("schemas.config", "validate", {}),
    ("schemas.session_state", "SessionState.model_rebuild"),
    ("schemas.acp.initialize", "InitializeParams.model_rebuild"),
    ("schemas.acp.session", "LoadSessionParams.model_rebuild"),
    ("schemas.transcript", "ANY_STEP.rebuild"),
)
"""What builds a model that is else built at its first use: module, function, what it is called with."""


def pieces() -> Iterator[Callable[[], object]]:
    """What is done, one after the other: modules, tools, then the models of what is stored."""
    yield from (partial(import_module, name) for name in MODULES)
    tools = import_module("runtime.tools.catalog")
    yield from (partial(tools.load, name) for name in tools.names())
    yield from (partial(build, *model) for model in MODELS)


def build(module: str, function: str, *given: object) -> None:
    """Call that function of a module."""
    attrgetter(function)(import_module(module))(*given)


async def warm_up(is_working: Callable[[], bool], is_used: Callable[[], bool]) -> None:
    """Do it all, unless there is a session first, which needs and imports the same.

    is_working: whether a request waits for its answer; nothing is done meanwhile. is_used: about sessions.
    """
    await trio.sleep(QUIET)
    waiting = pieces()
    while not is_used():
        if is_working():
            await trio.sleep(QUIET)
            continue
        piece = next(waiting, None)
        if piece is None:
            return
        piece()
        await trio.sleep(PAUSE)
