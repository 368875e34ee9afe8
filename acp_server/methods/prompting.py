"""`session/prompt` and `session/cancel`: both decide in the order of arrival, without waiting."""

import logging
from collections.abc import Mapping

from acp_server.app import App
from acp_server.dispatch import Answer, Later
from acp_server.inbound import parse, parse_prompt
from runtime.prompt import Prompt
from schemas.acp.prompt import CancelParams

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
    ticket = session.submit(Prompt(asked.text, blocks))

    async def run() -> dict[str, object]:
        return {"stopReason": await session.run(ticket)}

    return Later(run, cancel=lambda: session.give_up(ticket))


def cancel(app: App, params: Mapping[str, object]) -> None:
    """A notification: stops the running turn and what waits behind it. Unknown session: nothing to stop."""
    session = app.sessions.get(parse(CancelParams, params).session_id)
    if session is None:
        log.info("cancel for a session that is not open here")
        return
    session.cancel()
