"""What happened, as the messages that tell an ACP client: a table of maps from event to notifications.

Knows neither the connection nor any session. No optional value is sent as null, every message encodes to
one line far below 10 MiB. Streamed text is the hot path: plain dicts, no models.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from acp_server.acp.client_options import WireOptions, config_options
from acp_server.acp.size_limits import ALWAYS_FITS, bounded_object, cut, fits, sendable_blocks, split
from acp_server.acp.trim_updates import (
    BUDGET_AS_SIZE,
    META_KEY,
    USAGE_META_KEY,
    Frame,
    notice,
    trim_updates,
    update,
)
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

_ChunkKind = Literal["agent_message_chunk", "agent_thought_chunk"]

_LABEL_LENGTH = 1000
_MAX_LOCATIONS = 100
_MAX_PATH = 4096
_MAX_DIFFS = 3
_MAX_PLAN = 200


def updates(session_id: str, event: Event, options: WireOptions) -> list[Frame]:
    """The notifications for an event, in order; they belong together. Never empty."""
    return _MAPS[type(event)](session_id, event, options)


# ---------------------------------------------------------------- messages


def _agent_text(session_id: str, event: AgentText, options: WireOptions) -> list[Frame]:
    return _chunks(session_id, "agent_message_chunk", event.message_id, event.text)


def _agent_thought(session_id: str, event: AgentThought, options: WireOptions) -> list[Frame]:
    return _chunks(session_id, "agent_thought_chunk", event.message_id, event.text)


def _chunks(session_id: str, kind: _ChunkKind, message_id: str, text: str) -> list[Frame]:
    if len(text) <= ALWAYS_FITS:
        return [_chunk(session_id, kind, message_id, text)]
    return [_chunk(session_id, kind, message_id, piece) for piece in split(text)]


def _chunk(session_id: str, kind: _ChunkKind, message_id: str, text: str) -> Frame:
    return "session/update", {
        "sessionId": session_id,
        "update": {
            "sessionUpdate": kind,
            "content": {"type": "text", "text": text},
            "messageId": message_id,
        },
    }


def _user_message(session_id: str, event: UserMessage, options: WireOptions) -> list[Frame]:
    bodies: list[dict[str, object]] = [
        {"sessionUpdate": "user_message_chunk", "content": block, "messageId": event.message_id}
        for block in sendable_blocks(event.block)
    ]
    if event.restored_dropped_turns > 0:
        gone = {"droppedTurns": event.restored_dropped_turns, "restored": True}
        bodies[0]["_meta"] = {META_KEY: gone}
    return [update(session_id, body) for body in bodies]


# ---------------------------------------------------------------- tools


def _tool_started(session_id: str, event: ToolCallStarted, options: WireOptions) -> list[Frame]:
    return [update(session_id, {"sessionUpdate": "tool_call", **call_fields(event)})]


def call_fields(event: ToolCallStarted) -> dict[str, object]:
    """A call as an ACP object, with all that is known of it."""
    body: dict[str, object] = {
        "toolCallId": event.call_id,
        "title": _label(event.title),
        "name": _label(event.name),
        "kind": event.kind,
        "status": event.status,
        "rawInput": bounded_object(event.raw_input),
    }
    locations = [_location(place) for place in event.locations if len(place.path) <= _MAX_PATH]
    if locations:
        body["locations"] = locations[:_MAX_LOCATIONS]
    if event.content is not None or event.diffs:
        body["content"] = _tool_content(event.content or "", event.diffs)
    return body


def _tool_changed(session_id: str, event: ToolCallChanged, options: WireOptions) -> list[Frame]:
    body: dict[str, object] = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": event.call_id,
        "status": event.status,
    }
    if event.content is not None:
        body["content"] = _tool_content(event.content, event.diffs, event.terminal_id)
    return [update(session_id, body)]


def _tool_content(
    text: str, diffs: tuple[FileDiff, ...] = (), terminal_id: str = ""
) -> list[Mapping[str, object]]:
    # An array replaces the one before, so an empty one clears what was shown.
    parts: list[Mapping[str, object]] = []
    if terminal_id:
        parts.append({"type": "terminal", "terminalId": terminal_id})
    parts += [_diff(one) for one in diffs[:_MAX_DIFFS] if _can_be_shown(one)]
    if text:
        parts.append({"type": "content", "content": {"type": "text", "text": cut(text)}})
    return parts


def _diff(change: FileDiff) -> Mapping[str, object]:
    body = {"type": "diff", "path": change.path, "newText": change.new_text}
    return body if change.old_text is None else {**body, "oldText": change.old_text}


def _can_be_shown(change: FileDiff) -> bool:
    # Half a text would show a change that nobody makes.
    return len(change.path) <= _MAX_PATH and fits(change.old_text or "") and fits(change.new_text)


def _location(place: Location) -> Mapping[str, object]:
    return {"path": place.path} if place.line is None else {"path": place.path, "line": place.line}


def _label(text: str) -> str:
    return text if len(text) <= _LABEL_LENGTH else f"{text[: _LABEL_LENGTH - 1]}…"


# ---------------------------------------------------------------- the session


def _usage(session_id: str, event: UsageChanged, options: WireOptions) -> list[Frame]:
    body: dict[str, object] = {"sessionUpdate": "usage_update", "used": event.used, "size": event.size}
    if event.cost is not None:
        body["cost"] = {"amount": round(event.cost.amount, 8), "currency": event.cost.currency}
    if event.size_is_budget:
        body["_meta"] = {USAGE_META_KEY: BUDGET_AS_SIZE}
    return [update(session_id, body)]


def _title(session_id: str, event: TitleChanged, options: WireOptions) -> list[Frame]:
    body: dict[str, object] = {"sessionUpdate": "session_info_update", "updatedAt": event.updated_at}
    # A null title would clear the one that the client has.
    if event.title is not None:
        body["title"] = _label(event.title)
    return [update(session_id, body)]


def _commands(session_id: str, event: CommandsAvailable, options: WireOptions) -> list[Frame]:
    commands = [_command(*command) for command in event.commands]
    body: dict[str, object] = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
    return [update(session_id, body)]


def _command(name: str, description: str, hint: str | None) -> Mapping[str, object]:
    command: dict[str, object] = {"name": name, "description": _label(description)}
    return command if hint is None else {**command, "input": {"hint": _label(hint)}}


def _options(session_id: str, event: OptionsChanged, options: WireOptions) -> list[Frame]:
    body: dict[str, object] = {
        "sessionUpdate": "config_option_update",
        "configOptions": config_options(event.offers),
    }
    return [update(session_id, body)]


def _mode(session_id: str, event: ModeChanged, options: WireOptions) -> list[Frame]:
    return [update(session_id, {"sessionUpdate": "current_mode_update", "currentModeId": event.mode_id})]


def _plan(session_id: str, event: PlanChanged, options: WireOptions) -> list[Frame]:
    entries = [
        {"content": _label(entry.content), "priority": entry.priority, "status": entry.status}
        for entry in event.entries[:_MAX_PLAN]
    ]
    return [update(session_id, {"sessionUpdate": "plan", "entries": entries})]


def _noticed(session_id: str, event: Noticed, options: WireOptions) -> list[Frame]:
    return [notice(session_id, event.severity, event.title, event.description, options)]


def _trimmed(session_id: str, event: HistoryTrimmed, options: WireOptions) -> list[Frame]:
    return trim_updates(session_id, event, options)


# The value's parameter is narrower than Event; the key beside it makes that safe.
_MAPS: Mapping[type, Callable[..., list[Frame]]] = {
    UserMessage: _user_message,
    AgentText: _agent_text,
    AgentThought: _agent_thought,
    ToolCallStarted: _tool_started,
    ToolCallChanged: _tool_changed,
    UsageChanged: _usage,
    HistoryTrimmed: _trimmed,
    TitleChanged: _title,
    CommandsAvailable: _commands,
    OptionsChanged: _options,
    ModeChanged: _mode,
    PlanChanged: _plan,
    Noticed: _noticed,
}
