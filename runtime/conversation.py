"""A session between turns: what the model still gets, who listens, where it is stored.

Knows no protocol. The history is kept by `runtime.keeper`; a turn is driven by `runtime.turn`.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from runtime.events import Event, Noticed, TitleChanged
from runtime.keeper import HistoryKeeper
from runtime.ports import Client, ToolContext
from runtime.setup import Setup
from runtime.stored import HeadChange, Store
from schemas.transcript import SessionState

LocalAnswer = Callable[["Conversation", str], Awaitable[str | None]]
"""Answers a prompt without the model (commands, what to set when there is none); None = ask it."""


class Conversation:
    """A session's memory and its surroundings."""

    def __init__(
        self,
        session_id: str,
        cwd: Path,
        setup: Setup,
        store: Store,
        client: Client,
        *,
        state: SessionState | None = None,
        title: str | None = None,
        local: "LocalAnswer | None" = None,
    ) -> None:
        self.session_id = session_id
        self.store = store
        self.client = client
        self.title = title
        self._local = local
        self.pending: list[Noticed] = []
        self.keeper = HistoryKeeper(setup, state or SessionState(), self.emit)
        # Links are resolved once: a tool's path is compared after its own links are.
        self.tool_context = ToolContext(session_id, cwd, (cwd.resolve(),), client)

    @property
    def setup(self) -> Setup:
        """What the session runs with."""
        return self.keeper.setup

    async def emit(self, event: Event) -> None:
        """Tell the client."""
        await self.client.emit(self.session_id, event)

    async def show_pending(self) -> None:
        """Tell what came up while no turn ran."""
        pending, self.pending = self.pending, []
        for notice in pending:
            await self.emit(notice)

    async def local_answer(self, text: str) -> str | None:
        """The answer to a prompt that needs no model; None when the model is to be asked."""
        return None if self._local is None else await self._local(self, text)

    def next_head(self, title: str) -> HeadChange:
        """How the session's head changes with a prompt's end. title: for a session that has none yet."""
        return HeadChange(updated_at=self.setup.now(), title=title if self.title is None else None)

    async def show_head(self, head: HeadChange) -> None:
        """Tell the title and the time, once they are stored."""
        self.title = head.title or self.title
        await self.emit(TitleChanged(self.title, head.updated_at or ""))
