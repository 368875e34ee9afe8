"""The notification as a value, and the few bodies that more than one map builds. Knows no event."""

import os

from acp_server.wire_options import WireOptions
from acp_server.wire_text import cut
from runtime.events import Severity

Frame = tuple[str, dict[str, object]]
"""Method and params of one notification."""

_LEADS: dict[str, str] = {"info": "", "warning": "Warning: ", "error": "Error: "}
_TEXT_LIMIT = 64 * 1024


def update(session_id: str, body: dict[str, object]) -> Frame:
    """A `session/update`."""
    return "session/update", {"sessionId": session_id, "update": body}


def aside(session_id: str, text: str, message_id: str) -> Frame:
    """A line for the person, as a thought of its own: shown by every client, part of no answer."""
    # Many clients join neighbouring thoughts without looking at the id, hence the blank line.
    return update(
        session_id,
        {
            "sessionUpdate": "agent_thought_chunk",
            "content": {"type": "text", "text": f"{text}\n\n"},
            "messageId": message_id,
        },
    )


def notice(
    session_id: str,
    severity: Severity,
    title: str,
    description: str,
    options: WireOptions,
    *,
    meta: dict[str, object] | None = None,
) -> Frame:
    """A `notice` where the client takes them, else the same words as an aside: never silence."""
    title = cut(title, _TEXT_LIMIT) or "Notice"
    description = cut(description, _TEXT_LIMIT)
    if not options.notices:
        text = f"{_LEADS[severity]}{title}" + (f"\n{description}" if description else "")
        return aside(session_id, text, f"notice-{os.urandom(8).hex()}")
    body: dict[str, object] = {"sessionUpdate": "notice", "severity": severity, "title": title}
    if description:
        body["description"] = description
    if meta is not None:
        body["_meta"] = meta
    return update(session_id, body)
