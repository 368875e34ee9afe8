"""From sources to settings: defaults, every layer over the one before, what a choice undoes."""

import argparse
import subprocess
import sys

import pytest

from acp_server.acp.client_options import AcpSettings
from acp_server.config.settings import Options, add_options, given_variables, options_of
from runtime.providers.detect import HOSTED, suggestions
from runtime.values.errors import ConfigError
from runtime.values.profiles import PRESETS, Profile
from tests.acp_server.config.conftest import USER

KEY = "runtime_profiles.default.max_context_tokens"


def test_nothing_is_set(place):
    config = place.session()
    assert config.agent.name == "default"
    assert config.agent.provider is None
    assert config.agent.route is None
    assert config.agent.profile == Profile(name="default", trim_slack_ratio=0.2)
    assert config.acp == AcpSettings("always", "auto")
    assert config.store.endswith("/data/wholeturn/sessions.db")
    assert config.warnings == ()


WHOLE = """
default_agent = "main"
store = "kept/sessions.db"
[agents.main]
provider = "local-vllm"
runtime_profile = "short"
system_prompt = "Be brief.\\nVery."
[providers.local-vllm]
kind = "openai"
base_url = "http://127.0.0.1:8000/v1"
api_key_env = "VLLM_KEY"
model = "qwen3-coder"
context_window = 16000
max_output_tokens = 900
output_counted_apart = true
headers = { X-Team = "a b" }
options = { extra_body = { top_k = 5 } }
[runtime_profiles.short]
max_history_messages = 0
history_unit = "messages"
max_context_tokens = 0
context_compact_ratio = 1
trim_slack_ratio = 0.5
keep_tool_context_turns = 0
max_tool_result_chars = 0
max_tool_iterations = 3
running_turn_overflow = "shorten"
[runtime_profiles.short.history_pruning]
enabled = true
max_tokens = 77
[acp]
history_trimmed = "negotiated"
visible_trim_notice = "never"
"""


@pytest.fixture
def whole(place):
    place.user(WHOLE)
    return place.session()


def test_whole_file_agent_and_provider(place, whole):
    agent, provider, route = whole.agent, whole.agent.provider, whole.agent.route
    assert (agent.name, agent.system_prompt) == ("main", "Be brief.\nVery.")
    assert (provider.name, provider.kind) == ("local-vllm", "openai")
    assert (provider.base_url, provider.api_key_env) == ("http://127.0.0.1:8000/v1", "VLLM_KEY")
    assert provider.max_output_tokens == 900
    assert provider.headers == {"X-Team": "a b"}
    assert provider.options == {"extra_body": {"top_k": 5}}
    assert provider.source == f"{place.home}/config.toml:8"
    assert (route.provider, route.model, route.context_window) == ("local-vllm", "qwen3-coder", 16000)
    assert (route.max_output_tokens, route.output_counted_apart) == (900, True)


def test_whole_file_limits_and_the_rest(place, whole):
    profile = whole.agent.profile
    assert (profile.name, profile.max_history_messages, profile.history_unit) == ("short", 0, "messages")
    assert (profile.max_context_tokens, profile.context_compact_ratio) == (0, 1)
    assert (profile.trim_slack_ratio, profile.keep_tool_context_turns) == (0.5, 0)
    assert (profile.max_tool_result_chars, profile.max_tool_iterations) == (0, 3)
    assert profile.running_turn_overflow == "shorten"
    assert (profile.history_pruning.enabled, profile.history_pruning.max_tokens) == (True, 77)
    assert whole.acp == AcpSettings("negotiated", "never")
    assert whole.store == f"{place.home}/kept/sessions.db"
    assert whole.warnings == ()


def test_each_source_is_over_the_one_before(place, tmp_path):
    def tokens(**flags):
        return place.session(**flags).agent.profile.max_context_tokens

    assert tokens() is None
    place.user("[runtime_profiles.default]\nmax_context_tokens = 1")
    assert tokens() == 1
    place.project_file("[runtime_profiles.default]\nmax_context_tokens = 2")
    assert tokens() == 2
    named = tmp_path / "named.toml"
    named.write_text("[runtime_profiles.default]\nmax_context_tokens = 3")
    assert tokens(config=str(named)) == 3
    place.env["WHOLETURN_RUNTIME_PROFILES__DEFAULT__MAX_CONTEXT_TOKENS"] = "4"
    assert tokens(config=str(named)) == 4
    assert tokens(config=str(named), assignments=(f"{KEY}=5",)) == 5


def test_tables_are_joined_and_other_values_replaced(place):
    place.user(USER + '[providers.local.headers]\nA = "1"\nB = "2"\n')
    place.env["WHOLETURN_PROVIDERS__LOCAL__HEADERS__B"] = "9"
    agent = place.session(assignments=('providers.local.headers."C-D"=7',)).agent
    assert agent.provider.headers == {"A": "1", "B": "9", "C-D": "7"}


SHORT = [
    ({"WHOLETURN_MODEL": "m"}, {}, lambda agent: agent.route.model, "m"),
    ({"WHOLETURN_MODEL": "m"}, {"model": "n"}, lambda agent: agent.route.model, "n"),
    ({"WHOLETURN_PROVIDER": "cloud"}, {}, lambda agent: agent.provider.name, "cloud"),
    ({"WHOLETURN_PROVIDER": "cloud"}, {"provider": "local"}, lambda agent: agent.provider.name, "local"),
    ({"WHOLETURN_BASE_URL": "http://h/v1"}, {}, lambda agent: agent.provider.base_url, "http://h/v1"),
    ({"WHOLETURN_API_KEY_ENV": "K2"}, {}, lambda agent: agent.provider.api_key_env, "K2"),
    ({"WHOLETURN_CONTEXT_WINDOW": "5000"}, {}, lambda agent: agent.provider.context_window, 5000),
    ({"WHOLETURN_PROFILE": "tight"}, {}, lambda agent: agent.profile.name, "tight"),
    ({"WHOLETURN_DEFAULT_AGENT": "big"}, {}, lambda agent: agent.name, "big"),
    (
        {"WHOLETURN_DEFAULT_AGENT": "big"},
        {"model": "q"},
        lambda agent: (agent.name, agent.route.model),
        ("big", "q"),
    ),
    ({"WHOLETURN_MODEL": "m"}, {"assignments": ("default_agent=big",)}, lambda agent: agent.route.model, "m"),
    ({}, {"assignments": ("agents.default.model=7",)}, lambda agent: agent.route.model, "7"),
    ({"WHOLETURN_MODEL": ""}, {}, lambda agent: agent.route.model, "small-model"),
]


@pytest.mark.parametrize(("env", "flags", "look", "value"), SHORT)
def test_short_names(place, env, flags, look, value):
    place.user(USER)
    place.env |= env
    assert look(place.session(**flags).agent) == value


def test_quick_start_without_a_file(place):
    place.env |= {"WHOLETURN_BASE_URL": "http://127.0.0.1:11434/v1", "WHOLETURN_MODEL": "qwen3:8b"}
    agent = place.session().agent
    assert (agent.provider.name, agent.provider.kind) == ("openai", "openai")
    assert agent.route.model == "qwen3:8b"
    assert agent.provider.api_key_env == ""


def test_quick_start_goes_together_with_long_names(place):
    place.env |= {"WHOLETURN_BASE_URL": "http://127.0.0.1:11434/v1", "WHOLETURN_MODEL": "qwen3:8b"}
    place.env["WHOLETURN_PROVIDERS__OPENAI__TOOLS"] = "prompt"
    flags = {"assignments": ("providers.openai.token_counter=byte-classes",)}
    agent = place.session(**flags).agent
    assert (agent.provider.kind, agent.prompt_tools, agent.token_counter) == ("openai", True, "byte-classes")


def test_quick_start_with_a_script(place, monkeypatch):
    monkeypatch.chdir(place.project)
    place.env["WHOLETURN_SCRIPT"] = "talk.yaml"
    provider = place.session().agent.provider
    assert (provider.kind, provider.options) == ("scripted", {"script": f"{place.project}/talk.yaml"})


@pytest.mark.parametrize(
    ("kind", "address", "variable"),
    [
        ("openai", "", "OPENAI_API_KEY"),
        ("openai", 'base_url = "https://api.openai.com/v1"', "OPENAI_API_KEY"),
        ("openai", 'base_url = "https://api.openai.com.evil.example/v1"', ""),
        ("openai", 'base_url = "http://127.0.0.1:1/v1"', ""),
        ("openai_responses", "", "OPENAI_API_KEY"),
        ("openai_responses", 'base_url = "https://gateway.example/v1"', ""),
        ("anthropic", "", "ANTHROPIC_API_KEY"),
        ("anthropic", 'base_url = "https://api.anthropic.com"', "ANTHROPIC_API_KEY"),
        ("anthropic", 'base_url = "https://api.anthropic.com.evil.example"', ""),
        ("anthropic", 'base_url = "https://api.anthropic.com@evil.example"', ""),
        ("anthropic", 'base_url = "http://api.anthropic.com"', ""),
        ("anthropic", 'api_key_env = "MINE"', "MINE"),
    ],
)
def test_a_makers_key_goes_to_its_maker_only(place, kind, address, variable):
    place.user(f'[providers.x]\nkind = "{kind}"\n{address}')
    assert place.session().agent.provider.api_key_env == variable


def test_environment_finds_names_with_other_signs(place):
    place.user('[providers."My.local-vllm"]\nkind = "openai"')
    place.env["WHOLETURN_PROVIDERS__MY_LOCAL_VLLM__MODEL"] = "m"
    assert place.session().agent.provider.model == "m"


def test_paths_start_where_they_were_written(place, monkeypatch):
    monkeypatch.chdir(place.project)
    place.user('store = "a.db"\n[providers.s]\nkind = "scripted"\nscript = "talk.yaml"')
    assert place.session().store == f"{place.home}/a.db"
    assert place.session(store="b.db").store == f"{place.project}/b.db"
    assert place.session(store="memory").store == "memory"
    assert place.session().agent.provider.options["script"] == f"{place.home}/talk.yaml"


def test_preset_is_the_base_of_its_profile(place):
    place.user('[runtime_profiles.default]\npreset = "tight"\nmax_tool_iterations = 3')
    profile = place.session().agent.profile
    assert profile.max_tool_iterations == 3
    assert profile.max_history_messages == PRESETS["tight"].max_history_messages


def test_later_preset_starts_the_profile_afresh(place):
    place.user("[runtime_profiles.default]\nmax_context_tokens = 1\nmax_tool_iterations = 3")
    profile = place.session(assignments=("runtime_profiles.default.preset=tight",)).agent.profile
    assert (profile.max_context_tokens, profile.max_tool_iterations) == (8000, 10)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_preset_by_its_own_name(place, name):
    assert place.session(profile=name).agent.profile == PRESETS[name]


def test_model_goes_with_the_provider_it_was_named_for(place):
    place.user(USER)
    assert place.session(assignments=("default_agent=big",)).agent.route.model == "big-model"
    route = place.session(assignments=("default_agent=big",), provider="local").agent.route
    assert (route.provider, route.model, route.context_window) == ("local", "small-model", 16000)


def test_window_belongs_to_the_configured_model(place):
    place.user(USER)
    assert place.session(model="other").agent.route.context_window is None
    assert place.session(model="small-model").agent.route.context_window == 16000


def test_only_agent_and_only_provider_are_taken(place):
    place.user('[agents.solo]\nmodel = "m"\n[providers.p]\nkind = "openai"')
    agent = place.session().agent
    assert (agent.name, agent.provider.name) == ("solo", "p")


def test_named_file_must_be_there(place):
    with pytest.raises(ConfigError, match=r"--config .*none\.toml: there is no such file"):
        place.load(config="none.toml")


def test_own_variables_that_are_no_settings():
    env = {
        "WHOLETURN_CONFIG_DIR": "/x",
        "WHOLETURN_DATA_DIR": "/y",
        "WHOLETURN_LOG": "debug",
        "WHOLETURN_MODEL": "m",
        "OTHER": "1",
    }
    assert given_variables(env) == {"WHOLETURN_MODEL": "m"}


def test_misspelt_variable_is_told(place):
    place.env["WHOLETURN_MODELL"] = "m"
    assert place.session().warnings == (
        'WHOLETURN_MODELL: is no setting and changes nothing; did you mean "WHOLETURN_MODEL"?',
    )


def test_start_without_settings_loads_no_parser_and_no_schema(place):
    code = (
        "import os, sys; from acp_server.config.load import load_user_config; "
        "from acp_server.config.settings import Options; load_user_config(Options(), os.environ); "
        "print([m for m in ('tomllib', 'pydantic_core', 'difflib', 'platformdirs', 'schemas.config')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=place.env, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]" or not sys.platform.startswith("linux")


def test_options_set_something():
    assert not Options(config="x").set_something()
    assert Options(model="x").set_something()
    assert Options(assignments=("a=1",)).set_something()


FLAGS = [
    (["--model", "x", "sub"], Options(model="x")),
    (["sub", "--model", "x"], Options(model="x")),
    (["--model", "x", "sub", "--store", "memory"], Options(model="x", store="memory")),
    (["sub", "--set", "a=1", "--set", "b=2"], Options(assignments=("a=1", "b=2"))),
    (["--config", "f", "sub"], Options(config="f")),
    (["sub"], Options()),
    ([], Options()),
]


@pytest.mark.parametrize(("words", "options"), FLAGS)
def test_flags_before_and_after_a_command(words, options):
    parser = argparse.ArgumentParser()
    add_options(parser)
    add_options(parser.add_subparsers().add_parser("sub"))
    assert options_of(parser.parse_args(words)) == options


@pytest.mark.parametrize("variable", [api.variable for api in HOSTED])
def test_what_is_suggested_to_a_beginner_is_accepted(place, variable):
    (suggestion,) = suggestions({variable: "k"}, [])
    place.user(suggestion.toml)
    config = place.session()
    assert config.agent.provider.api_key_env == variable
    assert config.warnings == ()
