"""What a session can be set to: told when one is opened, and set by `session/set_config_option`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from acp_server.app import App
from acp_server.dispatch import Later
from acp_server.inbound import parse
from acp_server.methods.modes import mode_state, put_mode
from acp_server.offers import offers
from acp_server.wire_choices import config_options
from runtime.choices import MODE, Choice
from runtime.errors import InvalidParams
from runtime.permission.modes import mode_offer
from schemas.acp.options import SetConfigOptionParams

if TYPE_CHECKING:
    from runtime.switching import Switching


def options_of_new(app: App, session_id: str) -> dict[str, object]:
    """The part of an answer that states what a new session can be set to. Opens nothing."""
    config = app.config_of(session_id)
    mode = config.permissions.mode
    found = (mode_offer(mode), *offers(config, Choice()))
    return {**mode_state(mode), "configOptions": config_options(found)}


def options_of(app: App, session_id: str) -> dict[str, object]:
    """The same of an open session, with what it is set to. Raises ResourceNotFound."""
    talk = app.session(session_id).conversation
    return {**mode_state(talk.approver.mode), "configOptions": config_options(talk.offers())}


def set_config_option(app: App, params: Mapping[str, object]) -> Later:
    """Sets one thing at once, for the turns that begin from now on; a running one ends as it began.

    The mode is the exception: it holds from the next tool call on.
    """
    asked = parse(SetConfigOptionParams, params)
    session = app.session(asked.session_id)
    talk, idle = session.conversation, session.idle.is_set()
    changed = asked.config_id == MODE and put_mode(talk, asked.value)
    if asked.config_id != MODE:
        _choose(talk.switching, asked)

    async def run() -> dict[str, object]:
        if changed:
            await talk.approver.on_mode(talk.approver.mode)
        if idle:
            await talk.save_choice()
        # The modes themselves belong to the answers that open a session.
        return {"configOptions": options_of(app, asked.session_id)["configOptions"]}

    return Later(run)


def _choose(switching: "Switching | None", asked: SetConfigOptionParams) -> None:
    if switching is None:
        raise InvalidParams("Nothing can be set in this session.")
    switching.choose(asked.config_id, asked.value)
