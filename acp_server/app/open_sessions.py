"""Sessions while they are open: made from a stored head, restored, replayed, announced, or only looked at.

Imported when the first session is opened, after its id was given: it pulls in the whole runtime, and an
editor that waits for `session/new` needs none of that.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from acp_server.acp.client import AcpClient, Edition, Wire
from acp_server.acp.client_options import wire_options
from acp_server.assembly.mcp_servers import answering, session_fleet
from acp_server.assembly.session_options import still_there
from acp_server.assembly.session_setup import SettingsCatalog
from acp_server.commands.commands import COMMANDS, answer_locally, commands_of
from acp_server.config.paths import config_dir
from acp_server.config.settings import SessionConfig
from acp_server.workspace.guidance_files import GuidanceFiles
from acp_server.workspace.linked_files import Preparing
from acp_server.workspace.prompt_files import commands_for
from runtime.conversation.conversation import Conversation
from runtime.conversation.lease import LeasedStore, new_holder, noting
from runtime.conversation.load_and_fork import copy_session, read_state, readable_state, replay, restore
from runtime.conversation.switch_model import Switching, choice_of
from runtime.embed.silent_client import BareClient
from runtime.ports import Client, Provider
from runtime.providers.settings import ProviderSettings
from runtime.session.session import Session
from runtime.transcript.usage import stored_totals
from runtime.values.errors import ConfigError, NoModelConfigured
from runtime.values.events import CommandsAvailable, Event, Noticed
from runtime.values.ids_and_time import utc_now
from runtime.values.stored import SessionRecord, Store
from schemas.acp.initialize import InitializeParams

if TYPE_CHECKING:
    from schemas.acp.mcp import McpServer


DAMAGED_STATE = (
    "Nothing of the conversation is lost. The model sees all of it again, as far as the limits allow; what "
    "was chosen for this session (a mode, a model, a goal, pins) must be chosen again."
)
QUESTION_TOOL = "ask_user"
"""Offered only where the client can put a question to the person."""


class Live:
    """What `app` does with open sessions, as one value: the app imports this module late."""

    def __init__(self, env: Mapping[str, str], edition: "Edition | None" = None) -> None:
        self._env = env
        self._edition = edition

    def make_client(self, wire: Wire, params: Mapping[str, object], config: SessionConfig) -> Client:
        """The client of a connection, told things in the way it asked for. What it said wrongly is unsaid."""
        if self._edition is not None:
            return self._edition.make_client(wire, params, config.acp)
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
        servers: "tuple[McpServer, ...]" = (),
        window: str = "",
    ) -> Session:
        """A session with an empty history; its MCP servers are not started yet.

        window: what other processes are told of who has the session.
        """
        without = () if client.takes_questions() else (QUESTION_TOOL,)
        catalog, state = SettingsCatalog(config, provider, without), read_state(record.state)
        choice, lost = still_there(config, choice_of(state))
        fleet = session_fleet(config, servers, Path(record.cwd), lambda: talk.tool_context.roots)
        leased = LeasedStore(store, record.session_id, new_holder(window))
        talk = Conversation(
            record.session_id,
            Path(record.cwd),
            catalog.setup(choice),
            leased,
            client,
            state=state,
            title=record.title,
            local=answering(fleet, answer_locally),
            switching=Switching(catalog, choice),
        )
        for text in (*config.warnings, *lost):
            self.tell(talk, "Configuration", text)
        if readable_state(record.state) is None:
            self.tell(talk, "The session's stored state was damaged", DAMAGED_STATE)
        self._add_commands(talk)
        return Session(talk, fleet, leased.lease, Preparing(self.own_folder()))

    def _add_commands(self, talk: Conversation) -> None:
        """Those that are prompt files, as they are now."""
        found = commands_for(self._env, talk.tool_context.cwd, {name for name, _, _ in COMMANDS})
        talk.notes.commands = {command.name: command for command in found.commands}
        for text in found.left_out:
            self.tell(talk, "Prompt files", text)

    def own_folder(self) -> Path | None:
        """The folder of the user's settings; None where none can be told."""
        try:
            return config_dir(self._env)
        except ConfigError:
            return None

    def tell(self, talk: Conversation, title: str, text: str) -> None:
        """Say it with the next turn: outside of one, a client may not be listening."""
        talk.pending.append(Noticed("warning", title, text))

    async def announce(self, talk: Conversation) -> None:
        """The commands on offer, once the client knows the session."""
        await talk.emit(CommandsAvailable(commands_of(talk)))

    async def restore(self, talk: Conversation, *, quietly: bool) -> None:
        """Fill a conversation from the store. What it cost so far is summed up only if there are prices."""
        with noting(talk.store):
            await restore(talk, trim=not quietly, replayed=not quietly)
        prices = talk.setup.prices
        if prices:
            route_id = talk.setup.route.id
            talk.keeper.spent = (await stored_totals(talk.store, talk.session_id, prices, route_id)).session

    async def copy_session(self, store: Store, source: SessionRecord) -> str:
        """The id of a new session with all that the source holds."""
        return (await copy_session(store, source, now=utc_now())).session_id

    async def replay(self, talk: Conversation) -> None:
        await replay(talk)


class Silent(BareClient):
    """A client that nobody is behind."""

    async def emit(self, session_id: str, event: Event) -> None:
        """Nobody hears it."""
        await trio.lowlevel.checkpoint()


async def nobody(settings: ProviderSettings) -> Provider:
    """No model is asked."""
    raise NoModelConfigured("No model is asked here.")


async def viewed(
    record: SessionRecord, config: SessionConfig, store: Store, env: Mapping[str, str]
) -> Conversation:
    """The conversation as the session's next turn would find it. Costs the turns that are kept, no others.

    Raises StoreError, ConfigError.
    """
    live = Live(env)
    talk = live.open_session(record, config, store, Silent(), nobody).conversation
    # The ids of calls before the kept turns, which a whole restore looks for, weigh nothing.
    await restore(talk, trim=False, replayed=True)
    folder: Path | None = live.own_folder()
    await GuidanceFiles(folder).before_turn(talk.keeper, talk.tool_context)
    return talk
