"""How a trim of the history is told to an ACP client: one event, several messages, one unit in this order.

1. The product's own message: `session/update` of kind `history_trimmed` (no kind of ACP v1, so a strict
   client drops it) or, for a client that asked so, a notification `_wholeturn/history_trimmed`.
2. Always its conformant twin: a `usage_update` that carries the same facts in `_meta`.
3. Something the person sees: a compaction or a notice where the client takes these, else a line of thought.

Which of them go out is decided in `client_options`. The few bodies that `updates` builds as well are here.
Knows nothing of why or how a history is trimmed.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from acp_server.acp.client_options import WireOptions
from acp_server.acp.size_limits import cut
from runtime.history.rows.notice import Reason
from runtime.values.events import HistoryTrimmed, Severity

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


META_KEY = "wholeturn/history_trimmed"
USAGE_META_KEY = "wholeturn/usage"
BUDGET_AS_SIZE: dict[str, object] = {"sizeIs": "budget"}
"""Marks a `usage_update` whose size is the configured budget, since the model's window is not known."""

EXTENSION_METHOD = "_wholeturn/history_trimmed"


class _Words(NamedTuple):
    title: str
    lead: str
    noun: str
    done: str


_TRIMMED = _Words("Earlier conversation trimmed", "Earlier conversation left out", "message", "left out")
_WORDS: Mapping[str, _Words] = {
    "shorten": _Words("Older tool results shortened", "Older tool results shortened", "result", "shortened"),
    Reason.LOOP_TRIMMED: _Words(
        "Earlier tool rounds trimmed", "Earlier tool rounds of this turn left out", "message", "left out"
    ),
    Reason.LOOP_SUMMARIZED: _Words(
        "Earlier tool rounds summarized",
        "Earlier tool rounds of this turn summarized",
        "message",
        "summarized",
    ),
}
"""By strategy or reason, what the person reads where it is not that earlier messages were left out."""


def trim_updates(session_id: str, event: HistoryTrimmed, options: WireOptions) -> list[Frame]:
    """All messages for one trim."""
    facts = trim_facts(event)
    meta: dict[str, object] = {META_KEY: facts}
    return [
        *_own(session_id, event, options),
        update(session_id, _twin(event, meta)),
        *_standard(session_id, event, meta, options),
        *_visible(session_id, event, options),
    ]


def _own(session_id: str, event: HistoryTrimmed, options: WireOptions) -> list[Frame]:
    trim: dict[str, object] = {
        "droppedMessages": event.dropped_messages,
        "keptTurns": event.kept_turns,
        "reason": event.reason,
    }
    match options.trim_form:
        case "update":
            return [update(session_id, {"sessionUpdate": "history_trimmed", **trim})]
        case "extension":
            return [(EXTENSION_METHOD, {"sessionId": session_id, **trim})]
        case None:
            return []


def trim_facts(event: HistoryTrimmed) -> dict[str, object]:
    """All that is known of a trim."""
    facts: dict[str, object] = {
        "droppedMessages": event.dropped_messages,
        "keptTurns": event.kept_turns,
        "reason": event.reason,
        "trimId": event.trim_id,
        "droppedTurns": event.dropped_turns,
        "strategy": event.strategy,
    }
    if event.tokens is not None:
        facts["tokenBudget"] = event.tokens.budget
        facts["tokensBefore"] = event.tokens.before
        facts["tokensAfter"] = event.tokens.after
        facts["sources"] = {"before": event.tokens.before_source, "after": event.tokens.after_source}
    if event.note:
        facts["note"] = event.note
    return facts


def _twin(event: HistoryTrimmed, meta: dict[str, object]) -> dict[str, object]:
    """The `usage_update`; a bare `session_info_update` if neither window nor budget is known."""
    tokens = event.tokens
    size = event.size or (tokens.budget if tokens else 0)
    if size <= 0:
        return {"sessionUpdate": "session_info_update", "_meta": meta}
    used = event.used or (tokens.after if tokens else 0)
    if event.size_is_budget or not event.size:
        meta = {**meta, USAGE_META_KEY: BUDGET_AS_SIZE}
    return {"sessionUpdate": "usage_update", "used": used, "size": size, "_meta": meta}


def _standard(
    session_id: str, event: HistoryTrimmed, meta: dict[str, object], options: WireOptions
) -> list[Frame]:
    if options.compaction:
        body: dict[str, object] = {
            "sessionUpdate": "compaction_update",
            "compactionId": event.trim_id,
            "status": "completed",
            "_meta": meta,
        }
        if event.summary:
            body["summary"] = [{"type": "text", "text": cut(event.summary)}]
        return [update(session_id, body), *_remark(session_id, event, options)]
    if options.notices:
        words = _words(event)
        dropped = f"{_count(event.dropped_messages, words.noun)} {words.done}"
        return [notice(session_id, "info", words.title, dropped + _rest(event), options, meta=meta)]
    return []


def _remark(session_id: str, event: HistoryTrimmed, options: WireOptions) -> list[Frame]:
    # A compaction has no place for a sentence of ours; the visible line, if there is one, has it.
    if not event.note or options.visible_trim:
        return []
    return [notice(session_id, "info", _words(event).title, event.note, options)]


def _visible(session_id: str, event: HistoryTrimmed, options: WireOptions) -> list[Frame]:
    if not options.visible_trim:
        return []
    words = _words(event)
    text = f"{words.lead}: {_count(event.dropped_messages, words.noun)}{_rest(event)}"
    return [aside(session_id, text, f"trim-{event.trim_id}")]


def _words(event: HistoryTrimmed) -> _Words:
    return _WORDS.get(event.strategy) or _WORDS.get(event.reason, _TRIMMED)


def _rest(event: HistoryTrimmed) -> str:
    note = f" {event.note}" if event.note else ""
    return f"; {_count(event.kept_turns, 'turn')} kept ({event.reason}).{note}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
