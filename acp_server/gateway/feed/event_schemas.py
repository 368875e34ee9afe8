"""What the frames of the event feed look like, as JSON schemas: for the OpenAPI description. Pure data."""

from collections.abc import Mapping
from typing import NamedTuple

Schema = dict[str, object]
"""A JSON schema, draft 2020-12."""
Fields = Mapping[str, Schema]

EVENTS_LOST = "events_lost"
"""The type of the frame that stands for events which are no longer there to be replayed."""

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}


def one_of(*values: str) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": list(values)}


def items(schema: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": schema}


def record(required: Fields, optional: Fields | None = None) -> Schema:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


class Shape(NamedTuple):
    """The fields that are a kind's own."""

    required: Fields
    optional: Fields = {}  # noqa: RUF012 - never changed


_MESSAGE = Shape({"message_id": TEXT, "text": TEXT})
_DIFF = record({"path": TEXT, "new_text": TEXT}, {"old_text": TEXT})
_SHOWN: Fields = {"content": TEXT, "diffs": items(_DIFF)}
_STATUS = one_of("pending", "in_progress", "completed", "failed")
_SOURCE = one_of("estimate", "calibrated", "provider")
_METER: Fields = {"used": COUNT, "size": COUNT, "size_is_budget": BOOLEAN}
_VALUE = record({"id": TEXT, "name": TEXT})
_PLAN = record(
    {
        "content": TEXT,
        "priority": one_of("high", "medium", "low"),
        "status": one_of("pending", "in_progress", "completed"),
    }
)

SHAPES: Mapping[str, Shape] = {
    "user_message": Shape({"message_id": TEXT, "block": OBJECT}, {"restored_dropped_turns": COUNT}),
    "agent_text": _MESSAGE,
    "agent_thought": _MESSAGE,
    "tool_call_started": Shape(
        {"call_id": TEXT, "name": TEXT, "title": TEXT, "kind": TEXT, "raw_input": OBJECT, "status": _STATUS},
        {"locations": items(record({"path": TEXT}, {"line": COUNT})), **_SHOWN},
    ),
    "tool_call_changed": Shape({"call_id": TEXT, "status": _STATUS}, {**_SHOWN, "terminal_id": TEXT}),
    "usage_changed": Shape(_METER, {"cost": record({"amount": NUMBER, "currency": TEXT})}),
    "history_trimmed": Shape(
        {
            "dropped_messages": COUNT,
            "dropped_turns": COUNT,
            "kept_turns": COUNT,
            "reason": TEXT,
            "strategy": TEXT,
            "trim_id": TEXT,
        },
        {
            "token_budget": COUNT,
            "tokens_before": COUNT,
            "tokens_after": COUNT,
            "sources": record({"before": _SOURCE, "after": _SOURCE}),
            **_METER,
            "note": TEXT,
            "summary": TEXT,
        },
    ),
    "title_changed": Shape({}, {"title": TEXT, "updated_at": TEXT}),
    "commands_available": Shape(
        {"commands": items(record({"name": TEXT, "description": TEXT}, {"hint": TEXT}))}
    ),
    "options_changed": Shape(
        {
            "options": items(
                record({"id": TEXT, "name": TEXT, "category": TEXT, "current": TEXT, "values": items(_VALUE)})
            )
        }
    ),
    "mode_changed": Shape({"mode_id": TEXT}),
    "plan_changed": Shape({"entries": items(_PLAN)}),
    "noticed": Shape({"severity": one_of("info", "warning", "error"), "title": TEXT}, {"description": TEXT}),
}
"""By the type of the frame."""

_COMMON: Fields = {"event_id": TEXT, "session_id": TEXT, "timestamp": TEXT}
_ORIGIN: Fields = {"turn_id": TEXT, "agent_alias": TEXT, "channel": TEXT}


def event_schemas() -> dict[str, Schema]:
    """A schema for each type of frame, `events_lost` included, by the type's name."""
    made = {
        name: record({"type": one_of(name), **_COMMON, **shape.required}, {**shape.optional, **_ORIGIN})
        for name, shape in SHAPES.items()
    }
    lost = {"type": one_of(EVENTS_LOST), "event_id": TEXT, "timestamp": TEXT}
    return {**made, EVENTS_LOST: record(lost, {"last_event_id": TEXT, "lost": COUNT})}
