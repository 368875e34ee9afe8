"""The schema of the settings file: it knows its keys, takes good values and names bad ones."""

from collections.abc import Mapping

import pytest
from pydantic_core import ValidationError

from schemas import config as schema

AGENT = {"provider": "p", "model": "m:8b", "runtime_profile": "r", "system_prompt": "x\ny\t"}
OPENAI = {
    "kind": "openai",
    "base_url": "http://[::1]:8000/v1?x=1",
    "api_key_env": "_K9",
    "model": "org/m",
    "context_window": 0,
    "max_output_tokens": 1,
    "output_counted_apart": False,
    "tools": "prompt",
    "token_counter": "byte-classes",
    "headers": {"X-A": ""},
    "options": {"extra": {"list": [1, 2.5, "x", True, {"deep": []}]}},
}
SCRIPTED = {"kind": "scripted", "script": "talk.yaml"}
PRUNING = {"enabled": True, "max_tokens": 1, "keep_recent": 1, "collapse_tool_results": True}
PROFILE = {
    "preset": "tight",
    "max_history_messages": 0,
    "history_unit": "turns",
    "max_context_tokens": 2**53 - 1,
    "context_compact_ratio": 1,
    "trim_slack_ratio": 0,
    "keep_tool_context_turns": 0,
    "max_tool_result_chars": 0,
    "max_tool_iterations": 1,
    "running_turn_overflow": "fail",
    "history_pruning": PRUNING,
}
ACP = {"history_trimmed": "off", "visible_trim_notice": "never"}
GOOD = {
    "default_agent": "a",
    "store": "memory",
    "agents": {"a": AGENT},
    "providers": {"p": OPENAI, "s": SCRIPTED},
    "runtime_profiles": {"r": PROFILE},
    "acp": ACP,
}


def test_every_key_at_once():
    assert schema.validate(GOOD) == GOOD


def test_nothing_at_all():
    assert schema.validate({}) == {}


def test_good_names_every_key_of_every_section():
    sections: list[tuple[object, Mapping[str, object]]] = [
        (schema.ConfigFile, GOOD),
        (schema.AgentSection, AGENT),
        (schema.ProviderSection, OPENAI | SCRIPTED),
        (schema.ProfileSection, PROFILE),
        (schema.PruningSection, PRUNING),
        (schema.AcpSection, ACP),
    ]
    for section, example in sections:
        assert set(schema.keys_of(section)) == set(example)


BAD = [
    ({"x": 1}, "extra_forbidden", ("x",)),
    ({"agents": []}, "dict_type", ("agents",)),
    ({"agents": {"a": {"model": 1}}}, "string_type", ("agents", "a", "model")),
    ({"agents": {"a": {"system_prompt": "\0"}}}, "string_pattern_mismatch", ("agents", "a", "system_prompt")),
    ({"store": "a\nb"}, "string_pattern_mismatch", ("store",)),
    ({"store": "\x9b"}, "string_pattern_mismatch", ("store",)),
    ({"store": ""}, "string_pattern_mismatch", ("store",)),
    ({"providers": {"p": {"kind": "x"}}}, "literal_error", ("providers", "p", "kind")),
    ({"providers": {"p": {"context_window": True}}}, "int_type", ("providers", "p", "context_window")),
    ({"providers": {"p": {"context_window": 1.0}}}, "int_type", ("providers", "p", "context_window")),
    ({"providers": {"p": {"context_window": "1"}}}, "int_type", ("providers", "p", "context_window")),
    ({"providers": {"p": {"options": {"x": [None]}}}}, "json_value", ("providers", "p", "options", "x")),
    ({"acp": {"history_trimmed": True}}, "literal_error", ("acp", "history_trimmed")),
]


@pytest.mark.parametrize(("tree", "kind", "place"), BAD)
def test_bad_value(tree, kind, place):
    with pytest.raises(ValidationError) as caught:
        schema.validate(tree)
    (detail,) = caught.value.errors()
    assert (detail["type"], detail["loc"]) == (kind, place)


TEXT_KEYS = [
    (("store",), True),
    (("agents", "x", "model"), True),
    (("providers", "x", "headers", "Y"), True),
    (("providers", "x", "kind"), True),
    (("providers", "x", "context_window"), False),
    (("providers", "x", "options", "y"), False),
    (("runtime_profiles", "x"), False),
    (("runtime_profiles", "x", "history_pruning", "enabled"), False),
    (("nothing", "x"), False),
    (("store", "x"), False),
]


@pytest.mark.parametrize(("key", "text"), TEXT_KEYS)
def test_which_keys_take_text_only(key, text):
    assert schema.takes_text(key) is text
