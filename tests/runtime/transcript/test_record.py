"""Records of turns out of a transcript that is damaged, or was written elsewhere."""

from pathlib import Path

import orjson
import pytest

from runtime.transcript.restore import turn_events, turn_rows
from runtime.transcript.turn_record import FARTHEST, TurnRecord
from runtime.values.events import ToolCallStarted
from runtime.values.stored import StoredEntry

CALL: dict[str, object] = {"call_id": "c", "id": "x", "name": "look", "arguments": "{}"}
PROMPT: dict[str, object] = {
    "kind": "prompt",
    "message_id": "m",
    "text": "hi",
    "blocks": [{"type": "text", "text": "hi"}],
}


def reply(iteration: int = 0, **fields: object) -> dict[str, object]:
    return {"kind": "reply", "iteration": iteration, "message_id": "r", "text": "ok", **fields}


def tool(**fields: object) -> dict[str, object]:
    return {"kind": "tool", "iteration": 0, "call_id": "c", "status": "completed", "text": "t", **fields}


def context(**fields: object) -> dict[str, object]:
    return {"kind": "context", "iteration": 1, "strategy": "s", "rounds": 1, "persist": True, **fields}


def turn_of(*steps: dict[str, object], key: str = "turn:t:k") -> TurnRecord:
    turn = TurnRecord("t", 1)
    for seq, step in enumerate(steps, 1):
        turn.add(StoredEntry("t", key, str(step["kind"]), orjson.dumps(step), seq))
    return turn


@pytest.mark.parametrize("iteration", [-1, -5, FARTHEST + 1, 10**8, 10**17])
def test_an_iteration_that_cannot_be_is_passed_over(iteration: int) -> None:
    turn = turn_of(PROMPT, reply(iteration))
    assert turn.iterations == []
    assert turn_rows(turn)[0].content == "hi"


def test_a_hole_in_a_transcript_is_no_such_thing() -> None:
    assert len(turn_of(PROMPT, reply(40)).iterations) == 41


@pytest.mark.parametrize("number", ["\u00b2", "-1", "", "9" * 5000, "100000000"])
def test_a_key_with_an_odd_number_counts_for_the_first_or_not_at_all(number: str) -> None:
    turn = turn_of({"kind": "runtime", "text": "x"}, key=f"turn:t:iter:{number}:runtime:1")
    assert len(turn.iterations) <= 1


@pytest.mark.parametrize(
    "fields",
    [
        {"rounds": -3, "kept": [[-5, 9]], "outputs": [[-7, -3, "x"]]},
        {"kept": [[1, 9]]},
        {"kept": [[0, 0]], "outputs": [[0, -1, "x"]]},
        {"outputs": [[5, 0, "x"]]},
        {"rounds": 10**9, "kept": [[0, 10**9 - 1]]},
    ],
)
def test_a_pass_that_speaks_of_rounds_that_are_not_there_is_passed_over(fields: dict[str, object]) -> None:
    steps = (PROMPT, reply(calls=[CALL]), tool())
    assert turn_rows(turn_of(*steps, context(**fields))) == turn_rows(turn_of(*steps))


def test_what_a_client_would_not_know_is_not_sent() -> None:
    turn = turn_of(
        PROMPT,
        reply(calls=[CALL]),
        tool(tool_kind="hologram", locations=[[str(Path("/a")), -5], ["/b", 2**40], ["/c", 7]]),
    )
    shown = [event for event in turn_events(turn) if isinstance(event, ToolCallStarted)]
    assert [event.kind for event in shown] == ["other"]
    assert [place.line for place in shown[0].locations] == [None, None, 7]
