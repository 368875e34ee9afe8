"""The schema of the settings file: it knows its keys, takes good values and names bad ones."""

from collections.abc import Mapping

import pytest
from pydantic_core import ValidationError

from schemas import config as schema
from schemas.config_values import GatewaySection

AGENT = {
    "provider": "p",
    "model": "m:8b",
    "fallback": ["p/m", "s"],
    "runtime_profile": "r",
    "system_prompt": "x\ny\t",
}
PRICE = {"input": 1.25, "output": 10, "cached_read": 0, "cached_write": 1.5, "currency": "EUR"}
MODEL = {"context_window": 0, "max_output_tokens": 1, "images": False, "tools": "native", "price": PRICE}
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
    "models": {"org/m": MODEL},
}
SCRIPTED = {"kind": "scripted", "script": "talk.yaml"}
PRUNING = {"enabled": True, "max_tokens": 1, "keep_recent": 1, "collapse_tool_results": True}
LOOP_CONTEXT = {"strategy": "a.b:c", "keep_last": 1, "max_tokens": 1, "model": "p/m", "options": {"x": [1]}}
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
    "max_approvals": 0,
    "running_turn_overflow": "fail",
    "retention": "head-tail",
    "dropped_turns": "summarize",
    "summary_model": "p/small",
    "loop_context": LOOP_CONTEXT,
    "tools": ["read_file"],
    "history_pruning": PRUNING,
}
PERMISSIONS = {"mode": "plan", "allow": ["run_command:ls*"], "ask": [], "deny": ["fetch_url"]}
FETCH = {"private_addresses": True}
ACP = {"history_trimmed": "off", "visible_trim_notice": "never", "v2": True}
MCP = {"first_turn_wait": 0, "max_tools": 1, "max_tool_tokens": 1}
MCP_SERVER = {
    "command": "uvx",
    "args": ["x", ""],
    "env": {"A": ""},
    "pass_env": ["B"],
    "cwd": "tools",
    "url": "http://127.0.0.1:1/mcp",
    "type": "sse",
    "headers": {"X": "y"},
    "bearer_env": "C",
    "enabled": False,
    "tools": ["a"],
    "connect_timeout": 1,
    "call_timeout": 1,
}
GATEWAY = {
    "host": "::1",
    "port": 0,
    "tls_cert": "cert.pem",
    "tls_key": "key.pem",
    "allowed_hosts": ["gate.example.org"],
    "allowed_origins": ["https://gate.example.org"],
    "max_connections": 1,
    "max_message_bytes": 1024,
    "requests_per_second": 1,
    "detached_turn_seconds": 0,
}
GOOD = {
    "default_agent": "a",
    "store": "memory",
    "redact": [r"sk-\w+"],
    "agents": {"a": AGENT},
    "providers": {"p": OPENAI, "s": SCRIPTED},
    "runtime_profiles": {"r": PROFILE},
    "acp": ACP,
    "fetch": FETCH,
    "permissions": PERMISSIONS,
    "mcp": MCP,
    "mcp_servers": {"s": MCP_SERVER},
    "gateway": GATEWAY,
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
        (schema.ModelSection, MODEL),
        (schema.PriceSection, PRICE),
        (schema.ProfileSection, PROFILE),
        (schema.PruningSection, PRUNING),
        (schema.LoopContextSection, LOOP_CONTEXT),
        (schema.AcpSection, ACP),
        (schema.FetchSection, FETCH),
        (schema.PermissionsSection, PERMISSIONS),
        (schema.McpSection, MCP),
        (schema.McpServerSection, MCP_SERVER),
        (GatewaySection, GATEWAY),
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
    ({"gateway": {"port": 65536}}, "less_than_equal", ("gateway", "port")),
    ({"gateway": {"max_message_bytes": 1}}, "greater_than_equal", ("gateway", "max_message_bytes")),
    (
        {"gateway": {"allowed_origins": ["https://a/b"]}},
        "string_pattern_mismatch",
        ("gateway", "allowed_origins", 0),
    ),
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
