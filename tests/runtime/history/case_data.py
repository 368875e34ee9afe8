"""Reads `tests/data/cases.json`: situations people had, as rows and live histories."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

from runtime.history.live.history import History
from runtime.values.rows import Image, Role, Row, ToolCall

PATH = Path(__file__).resolve().parents[2] / "data" / "cases.json"


@cache
def cases() -> dict[str, Any]:
    """All cases by id."""
    return {case["id"]: case for case in json.loads(PATH.read_text(encoding="utf-8"))["cases"]}


def expand(text: Any) -> str:
    """A text of a case: a string, a repetition, or parts put together."""
    if isinstance(text, str):
        return text
    if "repeat" in text:
        return str(text["repeat"]) * int(text["times"])
    return "".join(map(expand, text["concat"]))


def row(value: dict[str, Any]) -> Row:
    """A row of a case. Results that some provider carries as user rows are tool rows here."""
    calls = tuple(ToolCall(c["id"], c["name"], json.dumps(c["args"])) for c in value.get("calls", ()))
    role: Role = "tool" if value.get("mark") == "tool-result-as-user" else value["role"]
    image = value.get("image")
    images = (Image(image["mime"], "A" * image["base64_chars"]),) if image else ()
    text = expand(value.get("text", ""))
    origin: Literal["runtime"] | None = "runtime" if value.get("mark") == "tool-text" else None
    return Row(role, text, calls, value.get("for"), images=images, origin=origin)


def generated(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """`history_gen` of kind tool_turns."""
    assert spec["gen"] == "tool_turns"
    rows: list[dict[str, Any]] = []
    for turn in range(1, spec["turns"] + 1):
        ids = [f"c{turn}_{index}" for index in range(spec["calls_per_turn"])]
        rows.append({"role": "user", "turn": turn, "text": f"ask {turn}"})
        calls = [{"id": one, "name": "shell", "args": {}} for one in ids]
        rows.append({"role": "assistant", "turn": turn, "calls": calls})
        rows += [
            {"role": "tool", "turn": turn, "for": one, "text": "r" * spec["result_chars"]} for one in ids
        ]
        rows.append({"role": "assistant", "turn": turn, "text": f"answer {turn}"})
    return rows


def given(case_id: str) -> list[dict[str, Any]]:
    """The raw rows of a case."""
    source = cases()[case_id]["input"]
    rows: list[dict[str, Any]] = (
        source["history"] if "history" in source else generated(source["history_gen"])
    )
    return rows


def flat(case_id: str) -> list[Row]:
    """The case as plain rows."""
    return [row(value) for value in given(case_id)]


def live(case_id: str) -> History:
    """The case as a live history, its last turn running. A marked breadcrumb becomes the flag."""
    values = given(case_id)
    marked = any(value.get("mark") == "breadcrumb" for value in values)
    system = [expand(value["text"]) for value in values if value["role"] == "system"]
    history = History(system, crumb_present=marked)
    turn = 0
    for value in values:
        if value["role"] == "system" or value.get("mark") == "breadcrumb":
            continue
        if value["turn"] != turn:
            turn = value["turn"]
            history.close_turn()
            history.open_turn(f"turn{turn}", row(value))
        else:
            history.append([row(value)])
    return history
