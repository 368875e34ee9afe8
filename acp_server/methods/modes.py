"""The permission mode of a session: told with the answers that open one, and set by `session/set_mode`.

It is published as a config option too; both are set in one place, so they are in step.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from acp_server.app import App
from acp_server.config.keys import printable
from acp_server.dispatch import Later
from acp_server.inbound import parse
from runtime.errors import InvalidParams
from runtime.permission.modes import MODES, ModeId, find_mode
from schemas.acp.modes import SetModeParams

if TYPE_CHECKING:  # it brings the whole runtime
    from runtime.conversation import Conversation


def mode_state(current: ModeId) -> dict[str, object]:
    """The modes there are, as ACP's session modes."""
    known = [{"id": mode.mode_id, "name": mode.name, "description": mode.description} for mode in MODES]
    return {"modes": {"currentModeId": current, "availableModes": known}}


def set_mode(app: App, params: Mapping[str, object]) -> Later:
    """Holds from the next tool call on, also within a turn that runs."""
    asked = parse(SetModeParams, params)
    session = app.session(asked.session_id)
    talk, idle = session.conversation, session.idle.is_set()
    changed = put_mode(talk, asked.mode_id)

    async def run() -> dict[str, object]:
        if changed:
            await talk.approver.on_mode(talk.approver.mode)
        if idle:
            # A turn that runs stores it with its end.
            await talk.save_choice()
        return {}

    return Later(run)


def put_mode(talk: "Conversation", mode_id: str) -> bool:
    """Whether that changed the mode. Raises InvalidParams for one that is not on offer."""
    mode = find_mode(mode_id)
    if mode is None:
        known = ", ".join(one.mode_id for one in MODES)
        raise InvalidParams(f"Invalid params: there is no mode {printable(mode_id)!r}; there are {known}")
    return talk.approver.put(mode)
