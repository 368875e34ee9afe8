"""Runtime events as the gateway's JSON objects: a table of maps from event to frame. Pure.

Keys are in snake_case; what is not known or not set is absent. Long texts are cut: a feed is for watching,
the whole text is in the transcript. `event_schemas` describes what comes out of here.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from acp_server.acp.size_limits import bounded_object, cut
from acp_server.gateway.feed.event_schemas import EVENTS_LOST
from acp_server.gateway.feed.event_schemas import event_schemas as event_schemas
from runtime.values.events import (
    AgentText,
    AgentThought,
    CommandsAvailable,
    Event,
    FileDiff,
    HistoryTrimmed,
    Location,
    ModeChanged,
    Noticed,
    OptionsChanged,
    PlanChanged,
    TitleChanged,
    ToolCallChanged,
    ToolCallStarted,
    UsageChanged,
    UserMessage,
)

TEXT_BYTES = 64 * 1024
"""Of one text in a frame, as JSON."""
MAX_ITEMS = 200
"""Of one list in a frame."""

Body = dict[str, object]


class Origin(NamedTuple):
    """Where an event comes from; '' for what is not known. agent_alias: the agent's name in the settings.

    channel: how those who prompt are connected.
    """

    turn_id: str = ""
    agent_alias: str = ""
    channel: str = ""


class Kind(NamedTuple):
    """How one kind of event is told."""

    type: str
    body: Callable[..., Body]


def frame(event_id: str, session_id: str, event: Event, timestamp: str, origin: Origin) -> Body:
    """The whole frame of an event. timestamp: ISO 8601, UTC."""
    kind = KINDS[type(event)]
    return {
        "type": kind.type,
        "event_id": event_id,
        "session_id": session_id,
        **kind.body(event),
        "timestamp": timestamp,
        **known(**origin._asdict()),
    }


def lost_frame(event_id: str, last_event_id: str, lost: int | None, timestamp: str) -> Body:
    """What stands for lost events. lost: how many, of all sessions; None when nobody can tell.

    event_id: of the newest of them, so that asking again from there repeats nothing.
    """
    body: Body = {"type": EVENTS_LOST, "event_id": event_id, "timestamp": timestamp}
    return body | known(last_event_id=last_event_id, lost=lost)


def known(**fields: object) -> Body:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, "", ())}


# ---------------------------------------------------------------- bodies


def _user_message(event: UserMessage) -> Body:
    body: Body = {"message_id": event.message_id, "block": bounded_object(event.block, TEXT_BYTES)}
    return body | known(restored_dropped_turns=event.restored_dropped_turns or None)


def _text(event: AgentText | AgentThought) -> Body:
    return {"message_id": event.message_id, "text": cut(event.text, TEXT_BYTES)}


def _tool_started(event: ToolCallStarted) -> Body:
    return {
        "call_id": event.call_id,
        "name": cut(event.name, TEXT_BYTES),
        "title": cut(event.title, TEXT_BYTES),
        "kind": event.kind,
        "raw_input": bounded_object(event.raw_input, TEXT_BYTES),
        "status": event.status,
    } | known(
        locations=[_location(place) for place in event.locations[:MAX_ITEMS]] or None,
        **_shown(event.content, event.diffs),
    )


def _tool_changed(event: ToolCallChanged) -> Body:
    body: Body = {"call_id": event.call_id, "status": event.status}
    return body | _shown(event.content, event.diffs) | known(terminal_id=event.terminal_id)


def _shown(content: str | None, diffs: tuple[FileDiff, ...]) -> Body:
    # An empty content is told: it clears what was shown.
    body: Body = {} if content is None else {"content": cut(content, TEXT_BYTES)}
    return body | known(diffs=[_diff(one) for one in diffs[:MAX_ITEMS]] or None)


def _location(place: Location) -> Body:
    return {"path": place.path} | known(line=place.line)


def _diff(one: FileDiff) -> Body:
    body: Body = {"path": one.path, "new_text": cut(one.new_text, TEXT_BYTES)}
    return body if one.old_text is None else body | {"old_text": cut(one.old_text, TEXT_BYTES)}


def _usage(event: UsageChanged) -> Body:
    body: Body = {"used": event.used, "size": event.size, "size_is_budget": event.size_is_budget}
    return body | known(cost=None if event.cost is None else event.cost._asdict())


def _trimmed(event: HistoryTrimmed) -> Body:
    body: Body = {
        "dropped_messages": event.dropped_messages,
        "dropped_turns": event.dropped_turns,
        "kept_turns": event.kept_turns,
        "reason": event.reason,
        "strategy": event.strategy,
        "trim_id": event.trim_id,
    }
    if event.tokens is not None:
        body |= {
            "token_budget": event.tokens.budget,
            "tokens_before": event.tokens.before,
            "tokens_after": event.tokens.after,
            "sources": {"before": event.tokens.before_source, "after": event.tokens.after_source},
        }
    if event.size:
        body |= {"used": event.used, "size": event.size, "size_is_budget": event.size_is_budget}
    return body | known(note=event.note, summary=cut(event.summary, TEXT_BYTES))


def _title(event: TitleChanged) -> Body:
    return known(title=event.title, updated_at=event.updated_at)


def _commands(event: CommandsAvailable) -> Body:
    return {
        "commands": [
            {"name": name, "description": cut(description, TEXT_BYTES)} | known(hint=hint)
            for name, description, hint in event.commands[:MAX_ITEMS]
        ]
    }


def _options(event: OptionsChanged) -> Body:
    return {
        "options": [
            {
                "id": offer.id,
                "name": offer.name,
                "category": offer.category,
                "current": offer.current,
                "values": [{"id": value.id, "name": value.name} for value in offer.values[:MAX_ITEMS]],
            }
            for offer in event.offers
        ]
    }


def _mode(event: ModeChanged) -> Body:
    return {"mode_id": event.mode_id}


def _plan(event: PlanChanged) -> Body:
    return {
        "entries": [
            {"content": cut(entry.content, TEXT_BYTES), "priority": entry.priority, "status": entry.status}
            for entry in event.entries[:MAX_ITEMS]
        ]
    }


def _noticed(event: Noticed) -> Body:
    body: Body = {"severity": event.severity, "title": event.title}
    return body | known(description=cut(event.description, TEXT_BYTES))


# ---------------------------------------------------------------- the table


# The body's parameter is narrower than Event; the key beside it makes that safe.
KINDS: Mapping[type, Kind] = {
    UserMessage: Kind("user_message", _user_message),
    AgentText: Kind("agent_text", _text),
    AgentThought: Kind("agent_thought", _text),
    ToolCallStarted: Kind("tool_call_started", _tool_started),
    ToolCallChanged: Kind("tool_call_changed", _tool_changed),
    UsageChanged: Kind("usage_changed", _usage),
    HistoryTrimmed: Kind("history_trimmed", _trimmed),
    TitleChanged: Kind("title_changed", _title),
    CommandsAvailable: Kind("commands_available", _commands),
    OptionsChanged: Kind("options_changed", _options),
    ModeChanged: Kind("mode_changed", _mode),
    PlanChanged: Kind("plan_changed", _plan),
    Noticed: Kind("noticed", _noticed),
}

TYPES = frozenset(kind.type for kind in KINDS.values())
"""All types of frames that are events."""
