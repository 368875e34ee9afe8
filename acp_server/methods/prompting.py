"""`session/prompt` and `session/cancel`: both decide in the order of arrival, without waiting."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from acp_server.app import App
from acp_server.dispatch import Answer, Later
from acp_server.hello import unstable_wanted
from acp_server.inbound import parse, parse_prompt
from runtime.custom_commands import meant
from runtime.prompt import Prompt, with_goal
from schemas.acp.prompt import CancelParams

if TYPE_CHECKING:
    from runtime.usage import Usage

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
