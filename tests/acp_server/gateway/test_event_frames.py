"""Every event as a frame of the feed: valid by its own schema, without nulls, bounded."""

import json
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from acp_server.gateway.feed.event_frames import KINDS, TYPES, Origin, frame, lost_frame
from acp_server.gateway.feed.event_schemas import EVENTS_LOST, event_schemas
from acp_server.wire.messages import encode
from runtime.values.events import AgentText, Event, HistoryTrimmed, ToolCallChanged, TrimTokens, UserMessage
from tests.acp_server.acp.test_outbound import EVENTS

NOW = "2026-01-02T03:04:05.000Z"
NOWHERE = Origin()
SCHEMAS = event_schemas()


def told(event: Event, origin: Origin = NOWHERE) -> dict[str, object]:
    """The frame as a client reads it, checked against its schema."""
    found: dict[str, object] = json.loads(encode(frame("run-1", "S", event, NOW, origin)))
    Draft202012Validator(SCHEMAS[str(found["type"])]).validate(found)
    return found


def test_the_table_and_the_schemas_have_every_kind_of_event() -> None:
    assert set(KINDS) == set(get_args(Event))
    assert {type(event) for event in EVENTS} == set(get_args(Event))
    assert set(SCHEMAS) == {*TYPES, EVENTS_LOST}
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("origin", [NOWHERE, Origin("t1", "default", "acp")])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_fits_its_schema(event: Event, origin: Origin) -> None:
    found = told(event, origin)
    assert (found["event_id"], found["session_id"], found["timestamp"]) == ("run-1", "S", NOW)
    told_of_origin = {name: found.get(name, "") for name in Origin._fields}
    assert told_of_origin == origin._asdict()


def test_a_trim_has_all_its_figures_under_their_names() -> None:
    tokens = TrimTokens(100, 200, 90, "provider", "calibrated")
    event = HistoryTrimmed(5, 2, 3, "context token budget exceeded", "recent", "t-9", tokens)
    assert told(event, Origin("turn-1", "default", "acp")) == {
        "type": "history_trimmed",
        "event_id": "run-1",
        "session_id": "S",
        "dropped_messages": 5,
        "dropped_turns": 2,
        "kept_turns": 3,
        "reason": "context token budget exceeded",
        "strategy": "recent",
        "trim_id": "t-9",
        "token_budget": 100,
        "tokens_before": 200,
        "tokens_after": 90,
        "sources": {"before": "provider", "after": "calibrated"},
        "timestamp": NOW,
        "turn_id": "turn-1",
        "agent_alias": "default",
        "channel": "acp",
    }


def test_what_is_not_known_is_absent() -> None:
    found = told(HistoryTrimmed(5, 2, 3, "history turn limit exceeded", "count", "t-9"))
    absent = {"token_budget", "sources", "used", "note", "summary", "turn_id", "agent_alias", "channel"}
    assert not absent & set(found)


def test_a_content_that_was_cleared_is_told() -> None:
    assert told(ToolCallChanged("c", "completed", ""))["content"] == ""
    assert "content" not in told(ToolCallChanged("c", "completed"))


@pytest.mark.parametrize(
    "event",
    [
        AgentText("m", "\x00" * 10_000_000),
        AgentText("m", "\ud800 half a pair"),
        UserMessage("m", {"type": "image", "data": "A" * 10_000_000, "mimeType": "image/png"}),
    ],
)
def test_no_frame_is_large(event: Event) -> None:
    assert len(json.dumps(told(event))) < 200_000


@pytest.mark.parametrize("lost", [None, 0, 7])
def test_lost_events_fit_their_schema(lost: int | None) -> None:
    found = lost_frame("run-4", "run-2", lost, NOW)
    Draft202012Validator(SCHEMAS[EVENTS_LOST]).validate(found)
    assert found.get("lost") == lost
