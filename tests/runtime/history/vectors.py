"""Runs vectors: one function an area, from the JSON of a vector to the JSON of a result."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from runtime.history.request.budget import effective_context_budget
from runtime.history.rows.boundaries import (
    is_tool_result_carrier,
    normalize_system_messages,
    opens_retention_turn,
    opens_turn,
)
from runtime.history.rows.collapse import collapse_tool_context, truncate_tool_result
from runtime.history.rows.estimate import (
    estimate_history_tokens,
    estimate_tool_schemas,
    price_rows,
    system_floor,
)
from runtime.history.rows.notice import insert_breadcrumb, load_breadcrumb_flag, make_breadcrumb
from runtime.history.rows.overflow import is_context_overflow
from runtime.history.rows.pairs import (
    remove_orphaned_tool_messages,
    strip_orphaned_tool_calls_from_assistants,
)
from runtime.history.rows.structured import (
    entries_from_rows,
    rows_from_entries,
    trim_conversation_to_recent_turns,
)
from runtime.history.rows.trim import (
    TrimResult,
    drop_oldest_whole_turn,
    recover_from_overflow,
    trim_to_recent_turn_count,
    trim_to_recent_turns,
    trim_to_reported_usage,
)
from runtime.values.errors import ProviderError, ProviderErrorKind
from runtime.values.profiles import HistoryPruning, Profile, Route, route_window
from runtime.values.rows import Row, ToolCall, ToolSpec

Json = dict[str, Any]


def row_from_json(value: Json) -> Row:
    known = {"role", "content", "tool_calls", "tool_call_id"}
    if set(value) - known:
        raise ValueError(f"unknown keys in a row: {sorted(set(value) - known)}")
    calls = tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in value.get("tool_calls", ()))
    return Row(value["role"], value["content"], calls, value.get("tool_call_id"))


def row_to_json(row: Row) -> Json:
    value: Json = {"role": row.role, "content": row.content}
    if row.tool_calls:
        value["tool_calls"] = [asdict(call) for call in row.tool_calls]
    if row.tool_call_id is not None:
        value["tool_call_id"] = row.tool_call_id
    return value


def rows_from_json(values: Iterable[Json]) -> list[Row]:
    return [row_from_json(value) for value in values]


def rows_to_json(rows: Iterable[Row]) -> list[Json]:
    return [row_to_json(row) for row in rows]


def _trim_json(result: TrimResult) -> Json:
    fields = ("dropped_messages", "dropped_turns", "kept_turns", "tokens_before", "tokens_after", "trimmed")
    return {"rows": rows_to_json(result.history), **{name: getattr(result, name) for name in fields}}


def turn_boundary(given: Json) -> Json:
    row = row_from_json(given["row"])
    return {
        "opens_turn": opens_turn(row),
        "opens_retention_turn": opens_retention_turn(row),
        "is_tool_result_carrier": is_tool_result_carrier(row),
    }


def _spec(value: Json) -> ToolSpec:
    parameters = json.dumps(value["parameters"], ensure_ascii=False, separators=(",", ":"))
    return ToolSpec(value["name"], value["description"], parameters)


def estimate(given: Json) -> Json:
    if given.get("measure") == "tool_schema":
        return {"tokens": estimate_tool_schemas(map(_spec, given["tool_specs"]))}
    rows = rows_from_json(given["rows"])
    if given.get("measure") == "system_floor":
        return {"tokens": system_floor(rows)}
    prices = price_rows(rows)
    result: Json = {"tokens": estimate_history_tokens(rows), "per_row": prices}
    if prices:
        result |= {"last_row_tokens_min": prices[-1], "last_row_tokens_max": prices[-1]}
    return result


def trim_count(given: Json) -> Json:
    rows, crumb = rows_from_json(given["rows"]), given["has_leading_breadcrumb"]
    if given["representation"] == "provider":
        return _trim_json(trim_to_recent_turn_count(rows, given["max_turns"], crumb_present=crumb))
    entries = entries_from_rows(rows)
    trim = trim_conversation_to_recent_turns(entries, given["max_turns"], crumb_present=crumb)
    return {
        "rows": rows_to_json(rows_from_entries(trim.history)),
        "trimmed": trim.trimmed,
        "dropped_messages": trim.dropped_messages,
        "dropped_turns": trim.dropped_turns,
        "kept_turns": trim.kept_turns,
    }


def trim_budget(given: Json) -> Json:
    rows, crumb = rows_from_json(given["rows"]), given["crumb_present"]
    mode = given.get("mode")
    if mode == "recovery":
        recovery = recover_from_overflow(rows, crumb_present=crumb)
        return asdict(replace(recovery, rows=())) | {"rows": rows_to_json(recovery.rows)}
    if mode == "reported":
        return _trim_json(
            trim_to_reported_usage(
                rows,
                given["budget_tokens"],
                reported_input_tokens=given["reported_input_tokens"],
                measured_estimate=given["measured_population_estimate"],
                tool_schema_tokens=given["tool_schema_tokens"],
                crumb_present=crumb,
            )
        )
    return _trim_json(trim_to_recent_turns(rows, given["budget_tokens"], crumb_present=crumb))


def breadcrumb(given: Json) -> Json:
    match given["op"]:
        case "make":
            row = make_breadcrumb()
            return {"row": row_to_json(row), "estimate": estimate_history_tokens([row])}
        case "insert":
            marked = insert_breadcrumb(rows_from_json(given["rows"]), given["crumb_present"])
            return {"rows": rows_to_json(marked.rows), "crumb_present": marked.crumb_present}
        case "drop_oldest_whole_turn":
            return _trim_json(drop_oldest_whole_turn(rows_from_json(given["rows"]), given["crumb_present"]))
        case "load_state":
            state = given["state"]
            rows = rows_from_json(state["history"])
            flag = load_breadcrumb_flag(state["version"], rows, state.get("history_has_trim_breadcrumb"))
            return {"crumb_present": flag}
        case other:
            raise ValueError(f"unknown op {other!r}")


def budget_resolution(given: Json) -> Json:
    pruning = given["history_pruning"]
    profile = Profile(
        max_context_tokens=given["max_context_tokens"],
        context_compact_ratio=given["context_compact_ratio"],
        history_pruning=HistoryPruning(pruning["enabled"], pruning["max_tokens"]),
    )
    window, route = given.get("context_window"), given.get("route")
    if route is not None:
        window = route_window(route["configured_model"], route["selected_model"], route["context_window"])
    return asdict(effective_context_budget(profile, Route("p", "m", window)))


def collapse(given: Json) -> Json:
    rows = collapse_tool_context(
        rows_from_json(given["rows"]),
        given["keep_tool_context_turns"],
        given["callable_tools"],
        given["crumb_present"],
    )
    return {"rows": rows_to_json(rows)}


def orphan_sweep(given: Json) -> Json:
    rows = rows_from_json(given["rows"])
    if given["op"] == "remove_orphaned_tool_messages":
        swept = remove_orphaned_tool_messages(rows)
        ids = list(swept.orphan_tool_call_ids)
        return {"rows": rows_to_json(swept.rows), "removed": swept.removed, "orphan_tool_call_ids": ids}
    stripped = strip_orphaned_tool_calls_from_assistants(rows)
    return {"rows": rows_to_json(stripped.rows), "stripped": stripped.stripped}


def normalize_system(given: Json) -> Json:
    return {"rows": rows_to_json(normalize_system_messages(rows_from_json(given["rows"])))}


def truncate(given: Json) -> Json:
    return asdict(truncate_tool_result(given["text"], given["max_chars"]))


def overflow_pattern(given: Json) -> Json:
    error = ProviderError(
        "refused",
        kind=ProviderErrorKind.BAD_REQUEST,
        retryable=False,
        status=given.get("status"),
        code=given.get("code", ""),
        detail=given["error_text"],
    )
    return {"is_context_overflow": is_context_overflow(error)}


AREAS: dict[str, Callable[[Json], Json]] = {
    run.__name__: run
    for run in (
        turn_boundary,
        estimate,
        trim_count,
        trim_budget,
        breadcrumb,
        budget_resolution,
        collapse,
        orphan_sweep,
        normalize_system,
        truncate,
        overflow_pattern,
    )
}


def _agrees(key: str, wanted: object, got: Any) -> bool:
    if key.endswith("_tokens_min"):
        return bool(got >= wanted)
    if key.endswith("_tokens_max"):
        return bool(got <= wanted)
    return json.dumps(got, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def differences(vector: Json) -> list[str]:
    """What a vector's result has otherwise than expected; empty when it passes."""
    run = AREAS.get(vector["area"])
    if run is None:
        return [f"no such area: {vector['area']}"]
    try:
        got = run(vector["input"])
    except Exception as error:  # noqa: BLE001 (a vector that breaks the code is a failed vector)
        return [f"raised {error!r}"]
    return [
        f"{key}: expected {wanted!r}, got {got.get(key, '(absent)')!r}"
        for key, wanted in vector["expect"].items()
        if key not in got or not _agrees(key, wanted, got[key])
    ]


def main(paths: Sequence[str]) -> int:
    """Check files; the exit code."""
    passed = failed = 0
    for path in paths:
        for vector in json.loads(Path(path).read_text(encoding="utf-8")):
            found = differences(vector)
            passed, failed = passed + (not found), failed + bool(found)
            if found:
                print(f"{vector['area']} {vector['name']}: {'; '.join(found)}")  # noqa: T201
    print(f"{passed} passed, {failed} failed")  # noqa: T201
    return 1 if failed or not paths else 0
