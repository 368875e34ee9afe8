"""What is asked of an open session: `session/prompt`, `cancel`, `set_mode`, `set_config_option`.

Each decides in the order of arrival, without waiting. The permission mode is published as a config option
too; both are set in one place, so they are in step.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from acp_server.acp.capabilities import unstable_wanted
from acp_server.acp.client_options import config_options
from acp_server.acp.params import parse, parse_prompt
from acp_server.app.app import App
from acp_server.assembly.session_options import offers
from acp_server.config.layers import printable
from acp_server.wire.dispatch import Answer, Later
from runtime.permission.modes import MODES, ModeId, find_mode, mode_offer
from runtime.values.errors import InvalidParams
from runtime.values.profiles import MODE, Choice
from runtime.values.prompt import Prompt, meant, with_goal
from schemas.acp.prompt_and_options import CancelParams, SetConfigOptionParams, SetModeParams

if TYPE_CHECKING:
    from runtime.transcript.usage import Usage

log = logging.getLogger("wholeturn.prompting")


def prompt(app: App, params: Mapping[str, object]) -> Answer | Later:
    """A turn. It waits for the one before it; giving the request up cancels it like `session/cancel`.

    A prompt without any block asks nothing: it ends at once and leaves no trace.
    """
    asked = parse_prompt(params)
    session = app.session(asked.session_id)
    if not asked.blocks:
        return Answer({"stopReason": "end_turn"})
    blocks = tuple(dict(block) for block in asked.blocks)
    text = meant(asked.text, session.conversation.notes.commands)
    ticket = session.submit(with_goal(Prompt(text, blocks)))

    async def run() -> dict[str, object]:
        result: dict[str, object] = {"stopReason": await session.run(ticket)}
        if unstable_wanted(app.greeting):
            talk = session.conversation
            # Read at once: when the prompt that waits has begun, the newest turn is another one.
            result |= usage_of(talk.notes.spent_before, talk.keeper.spent)
        return result

    return Later(run, cancel=lambda: session.give_up(ticket))


def usage_of(before: "Usage", after: "Usage") -> dict[str, object]:
    """A turn's tokens as the unstable `PromptResponse.usage`; nothing when no model was asked."""
    if after.calls == before.calls:
        return {}
    used, given = after.input - before.input, after.output - before.output
    usage: dict[str, object] = {
        "totalTokens": used + given,
        "inputTokens": used,
        "outputTokens": given,
        "cachedReadTokens": after.cached_read - before.cached_read,
        "cachedWriteTokens": after.cached_write - before.cached_write,
    }
    return {"usage": usage}


def cancel(app: App, params: Mapping[str, object]) -> None:
    """A notification: stops the running turn and what waits behind it. Unknown session: nothing to stop."""
    session = app.sessions.get(parse(CancelParams, params).session_id)
    if session is None:
        log.info("cancel for a session that is not open here")
        return
    session.cancel()


if TYPE_CHECKING:  # it brings the whole runtime
    from runtime.conversation.conversation import Conversation


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


if TYPE_CHECKING:
    from runtime.conversation.switch_model import Switching


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
            if talk.switching is not None:
                await talk.switching.show(talk.keeper)
        # The modes themselves belong to the answers that open a session.
        return {"configOptions": options_of(app, asked.session_id)["configOptions"]}

    return Later(run)


def _choose(switching: "Switching | None", asked: SetConfigOptionParams) -> None:
    if switching is None:
        raise InvalidParams("Nothing can be set in this session.")
    switching.choose(asked.config_id, asked.value)
