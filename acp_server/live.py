"""Sessions while they are open: made from a stored head, restored, replayed, announced.

Imported when the first session is opened, after its id was given: it pulls in the whole runtime, and an
editor that waits for `session/new` needs none of that.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from acp_server.client import AcpClient, Wire
from acp_server.config.settings import SessionConfig
from acp_server.local import COMMANDS, answer_locally
from acp_server.setup import make_setup
from acp_server.wire_options import wire_options
from runtime.conversation import Conversation
from runtime.events import CommandsAvailable, Noticed
from runtime.loading import read_state, replay, restore
from runtime.ports import Client, Provider
from runtime.providers.settings import ProviderSettings
from runtime.session import Session
from runtime.stored import SessionRecord, Store
from schemas.acp.initialize import InitializeParams


class Live:
    """What `app` does with open sessions, as one value: the app imports this module late."""

    def make_client(self, wire: Wire, params: Mapping[str, object], config: SessionConfig) -> Client:
        """The client of a connection, told things in the way it asked for. What it said wrongly is unsaid."""
        capabilities = InitializeParams.model_validate(params).client_capabilities
        options = wire_options(
            capabilities,
            history_trimmed=config.acp.history_trimmed,
            visible_trim_notice=config.acp.visible_trim_notice,
        )
        return AcpClient(wire, options)

    def open_session(
        self,
        record: SessionRecord,
        config: SessionConfig,
        store: Store,
        client: Client,
        provider: Callable[[ProviderSettings], Awaitable[Provider]],
    ) -> Session:
        """A session with an empty history. Raises StoreError when its stored state cannot be read."""
        talk = Conversation(
            record.session_id,
            Path(record.cwd),
            make_setup(config, provider),
            store,
            client,
            state=read_state(record.state),
            title=record.title,
            local=answer_locally,
        )
        for text in config.warnings:
            self.tell(talk, "Configuration", text)
        return Session(talk)

    def tell(self, talk: Conversation, title: str, text: str) -> None:
        """Say it with the next turn: outside of one, a client may not be listening."""
        talk.pending.append(Noticed("warning", title, text))

    async def announce(self, talk: Conversation) -> None:
        """The commands on offer, once the client knows the session."""
        await talk.emit(CommandsAvailable(COMMANDS))

    async def restore(self, talk: Conversation) -> None:
        """See `runtime.loading`."""
        await restore(talk)

    async def replay(self, talk: Conversation) -> None:
        """See `runtime.loading`."""
        await replay(talk)
