"""How a trim is told: settings against what the client declared, and the unit's exact content."""

from typing import Literal, get_args

import pytest

from acp_server.acp.capabilities import initialize_result
from acp_server.acp.client_options import TrimSetting, VisibleSetting, WireOptions, wire_options
from acp_server.acp.trim_updates import EXTENSION_METHOD, META_KEY, trim_updates
from acp_server.acp.updates import updates
from runtime.values.events import HistoryTrimmed, TrimTokens
from schemas.acp.initialize import ClientCapabilities, InitializeResult
from tests.support.acp_schema import NonConformant, check_params

REASON = "context token budget exceeded"
TOKENS = TrimTokens(9000, 12000, 4821, "provider", "calibrated")
TRIM = HistoryTrimmed(12, 4, 3, REASON, "token-budget", "t-7", TOKENS, used=4821, size=200000)
FACTS = {"droppedMessages": 12, "keptTurns": 3, "reason": REASON}

Step = Literal["E1", "E2", "E3-compaction", "E3-notice", "E4", "E5"]
Wish = bool | str | int | None


def options_for(
    wish: Wish,
    gates: tuple[str, ...] = (),
    setting: TrimSetting = "always",
    visible: VisibleSetting = "auto",
) -> WireOptions:
    offered: dict[str, object] = {"session": {gate: {} for gate in gates}}
    if wish is not None:
        offered["_meta"] = {"wholeturn": {"historyTrimmed": wish}, "other": 1}
    capabilities = ClientCapabilities.model_validate(offered)
    return wire_options(capabilities, history_trimmed=setting, visible_trim_notice=visible)


KINDS: dict[str, Step] = {
    "history_trimmed": "E1",
    "usage_update": "E2",
    "session_info_update": "E2",
    "compaction_update": "E3-compaction",
    "notice": "E3-notice",
    "agent_thought_chunk": "E5",
}


def steps(options: WireOptions, event: HistoryTrimmed = TRIM) -> list[Step]:
    return [
        "E4" if method == EXTENSION_METHOD else KINDS[update_of(params)["sessionUpdate"]]
        for method, params in updates("S", event, options)
    ]


def update_of(params: dict[str, object]) -> dict[str, str]:
    update = params["update"]
    assert isinstance(update, dict)
    return update


def told(options: WireOptions, event: HistoryTrimmed = TRIM) -> dict[Step, dict[str, object]]:
    frames = [params for _, params in updates("S", event, options)]
    return dict(zip(steps(options, event), frames, strict=True))


OWN: dict[tuple[TrimSetting, Wish], Step | None] = {
    ("always", None): "E1",
    ("always", True): "E1",
    ("always", False): None,
    ("always", "ext"): "E4",
    ("always", "other"): "E1",
    ("negotiated", None): None,
    ("negotiated", True): "E1",
    ("negotiated", False): None,
    ("negotiated", "ext"): "E4",
    ("negotiated", "true"): None,
    ("off", None): None,
    ("off", True): None,
    ("off", False): None,
    ("off", "ext"): None,
}
SHOWN: dict[tuple[str, ...], Step | None] = {
    (): None,
    ("notices",): "E3-notice",
    ("compaction",): "E3-compaction",
    ("compaction", "notices"): "E3-compaction",
}


@pytest.mark.parametrize("visible", get_args(VisibleSetting))
@pytest.mark.parametrize("gates", SHOWN, ids=str)
@pytest.mark.parametrize(("setting", "wish"), OWN)
def test_the_matrix(setting, wish, gates, visible):
    own, shown = OWN[setting, wish], SHOWN[gates]
    known_to_client = own == "E1" and wish is True
    aloud = {"auto": shown is None and not known_to_client, "always": True, "never": False}[visible]
    expected = [step for step in (own, "E2", shown, "E5" if aloud else None) if step]
    options = options_for(wish, gates, setting, visible)
    assert steps(options) == expected
    for method, params in updates("S", TRIM, options):
        check_params(method, params, trim_exception=own == "E1")


def test_a_strict_stream_has_no_exception_and_the_bare_update_needs_one():
    (method, params), *others = updates("S", TRIM, options_for(None))
    with pytest.raises(NonConformant):
        check_params(method, params, trim_exception=False)
    for other in others:
        check_params(*other, trim_exception=False)
    for strict in (options_for(False), options_for(None, setting="off"), options_for("ext")):
        for frame in updates("S", TRIM, strict):
            check_params(*frame, trim_exception=False)


def test_a_client_that_declared_nothing_has_the_default_options():
    assert options_for(None) == WireOptions()


@pytest.mark.parametrize(
    "meta", [None, {}, {"wholeturn": None}, {"wholeturn": "x"}, {"wholeturn": {}}, 3, []]
)
def test_odd_declarations_count_as_none(meta):
    assert wire_options(ClientCapabilities.model_validate({"_meta": meta})) == WireOptions()


def test_files_are_asked_for_only_where_offered():
    offered = ClientCapabilities.model_validate({"fs": {"readTextFile": True}})
    assert wire_options(offered).read_text_file
    assert not options_for(None).read_text_file


# ---------------------------------------------------------------- content


def test_the_products_own_messages_carry_the_three_facts_and_nothing_else():
    own = told(options_for(None))["E1"]
    assert own == {"sessionId": "S", "update": {"sessionUpdate": "history_trimmed", **FACTS}}
    assert told(options_for("ext"))["E4"] == {"sessionId": "S", **FACTS}


def test_the_twin_carries_the_same_facts_and_the_rest():
    assert told(options_for(None))["E2"]["update"] == {
        "sessionUpdate": "usage_update",
        "used": 4821,
        "size": 200000,
        "_meta": {
            META_KEY: {
                **FACTS,
                "trimId": "t-7",
                "droppedTurns": 4,
                "strategy": "token-budget",
                "tokenBudget": 9000,
                "tokensBefore": 12000,
                "tokensAfter": 4821,
                "sources": {"before": "provider", "after": "calibrated"},
            }
        },
    }


def test_a_compaction_is_complete_and_carries_the_facts():
    sent = told(options_for(True, ("compaction",)))
    compaction = update_of(sent["E3-compaction"])
    assert (compaction["compactionId"], compaction["status"]) == ("t-7", "completed")
    assert compaction["_meta"] == update_of(sent["E2"])["_meta"]


def test_a_compaction_carries_the_summary():
    event = HistoryTrimmed(4, 0, 1, "loop context summarized", "summarize", "t-8", summary="it was red")
    sent = trim_updates("S", event, options_for(True, ("compaction",)))
    (body,) = (params["update"] for _, params in sent if "compaction_update" in str(params))
    assert isinstance(body, dict)
    assert body["summary"] == [{"type": "text", "text": "it was red"}]
    assert "summary" not in update_of(told(options_for(True, ("compaction",)))["E3-compaction"])


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("loop context trimmed", "Earlier tool rounds of this turn left out: 4 messages; 1 turn kept"),
        ("loop context summarized", "Earlier tool rounds of this turn summarized: 4 messages; 1 turn kept"),
    ],
)
def test_the_visible_line_tells_rounds_from_turns(reason, line):
    event = HistoryTrimmed(4, 0, 1, reason, "own", "t-9")
    sent = trim_updates("S", event, options_for(None))
    assert any(line in str(frame[1]) for frame in sent)


def test_a_notice_tells_the_figures():
    assert told(options_for(True, ("notices",)))["E3-notice"]["update"] == {
        "sessionUpdate": "notice",
        "severity": "info",
        "title": "Earlier conversation trimmed",
        "description": f"12 messages left out; 3 turns kept ({REASON}).",
        "_meta": update_of(told(options_for(True))["E2"])["_meta"],
    }


@pytest.mark.parametrize(
    ("strategy", "dropped", "kept", "note", "line"),
    [
        ("count", 12, 3, "", "Earlier conversation left out: 12 messages; 3 turns kept (why)."),
        ("count", 1, 1, "", "Earlier conversation left out: 1 message; 1 turn kept (why)."),
        ("recent", 2, 0, "So.", "Earlier conversation left out: 2 messages; 0 turns kept (why). So."),
        ("shorten", 2, 1, "", "Older tool results shortened: 2 results; 1 turn kept (why)."),
    ],
)
def test_the_visible_line(strategy, dropped, kept, note, line):
    event = HistoryTrimmed(dropped, 1, kept, "why", strategy, "t-1", note=note)
    chunk = told(options_for(None), event)["E5"]["update"]
    assert chunk == {
        "sessionUpdate": "agent_thought_chunk",
        "content": {"type": "text", "text": f"{line}\n\n"},
        "messageId": "trim-t-1",
    }


def test_a_remark_reaches_the_person_beside_a_compaction():
    event = HistoryTrimmed(1, 1, 1, "why", "count", "t-1", note="max_context_tokens was overruled.")
    assert steps(options_for(True, ("compaction",)), event) == ["E1", "E2", "E3-compaction", "E5"]
    both = options_for(True, ("compaction", "notices"))
    assert steps(both, event) == ["E1", "E2", "E3-compaction", "E3-notice"]
    assert update_of(told(both, event)["E3-notice"])["description"] == event.note


@pytest.mark.parametrize(
    ("tokens", "used", "size", "is_budget", "kind", "meter"),
    [
        (TOKENS, 10, 100, False, "usage_update", (10, 100, False)),
        (TOKENS, 10, 100, True, "usage_update", (10, 100, True)),
        (TOKENS, 0, 0, False, "usage_update", (4821, 9000, True)),
        (None, 10, 0, False, "session_info_update", None),
        (TrimTokens(0, 9, 3), 10, 0, False, "session_info_update", None),
    ],
)
def test_the_twin_without_a_window_names_the_budget_and_without_either_no_figure(
    tokens, used, size, is_budget, kind, meter
):
    event = HistoryTrimmed(
        1, 1, 1, "why", "count", "t-1", tokens, used=used, size=size, size_is_budget=is_budget
    )
    twin = told(options_for(None), event)["E2"]["update"]
    assert isinstance(twin, dict)
    assert twin["sessionUpdate"] == kind
    assert twin["_meta"][META_KEY]["trimId"] == "t-1"
    if meter is not None:
        marked = twin["_meta"].get("wholeturn/usage") == {"sizeIs": "budget"}
        assert (twin["used"], twin["size"], marked) == meter


def test_the_answer_to_initialize_announces_what_is_sent():
    result = InitializeResult.model_validate(initialize_result({"protocolVersion": 1}))
    assert result.agent_capabilities.meta == {
        "wholeturn": {
            "historyTrimmed": {
                "sessionUpdate": "history_trimmed",
                "usageMeta": META_KEY,
                "extNotification": EXTENSION_METHOD,
            }
        }
    }
