"""A stored session opened to be looked at: under the settings as they are now, with no model and no listener.

Nothing of it is written and no tool server is started; what `/context` would show in it can be read off.
"""

from collections.abc import Mapping
from pathlib import Path

import trio

from acp_server.config.settings import SessionConfig
from acp_server.guidance_files import GuidanceFiles
from acp_server.live import Live
from runtime.bare_client import BareClient
from runtime.conversation import Conversation
from runtime.errors import NoModelConfigured
from runtime.events import Event
from runtime.loading import restore
from runtime.ports import Provider
from runtime.providers.settings import ProviderSettings
from runtime.stored import SessionRecord, Store


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
