"""`config show`, `config path` and `trust` as a person runs them."""

import argparse
import json
import tomllib

import pytest

from acp_server.cli import config as commands
from acp_server.config.layers import subtree
from tests.acp_server.config.conftest import USER

SECRETS = """\
[providers.local]
kind = "openai"
base_url = "https://me:hunter2@host.example/v1?api-key=hunter3"
api_key_env = "LOCAL_KEY"
headers = { Authorization = "Bearer hunter4" }
[providers.local.options.extra_body]
api_token = "hunter5"
deep = { auth = ["hunter6", { x = "hunter7" }] }
plain = "shown"
top_k = 4
"""


@pytest.fixture
def command(place, monkeypatch, capsys):
    monkeypatch.chdir(place.project)

    def run(*words):
        for name, value in place.env.items():
            monkeypatch.setenv(name, value)
        parser = argparse.ArgumentParser()
        commands.register(parser.add_subparsers())
        args = parser.parse_args(words)
        status = args.run(args)
        return (status, *capsys.readouterr())

    return run


def test_show_tells_value_and_place_of_everything(place, command):
    place.user(USER)
    place.project_file("[runtime_profiles.default]\nmax_context_tokens = 8000")
    place.env["WHOLETURN_MODEL"] = "m"
    status, out, err = command("config", "show", "--set", "runtime_profiles.default.max_tool_iterations=7")
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for line in (
        f"# user {place.home}/config.toml",
        f"# project {place.project}/.wholeturn.toml (not trusted)",
        'default_agent = "default" # default',
        'provider = "local" # user:2',
        'model = "m" # WHOLETURN_MODEL',
        'api_key_env = "LOCAL_KEY" # user:9, not set',
        'api_key_env = "OPENAI_API_KEY" # default, not set',
        "max_context_tokens = 8000 # project:2",
        "max_history_messages = 50 # default",
        "# --set runtime_profiles.default.max_tool_iterations",
        'history_trimmed = "always" # default',
    ):
        assert any(line in shown for shown in lines), line
    long = [line for line in out.splitlines() if len(line) > 80]
    assert all(str(place.home.parent) in line for line in long)


def test_show_without_any_setting(command):
    status, out, _ = command("config", "show")
    assert status == 0
    assert "No settings file was found" in out
    assert "max_context_tokens = 32000" in out


def test_show_is_valid_toml_but_for_unset_values(place, command):
    place.user(USER)
    _, out, _ = command("config", "show")
    tree = tomllib.loads(out.replace("= unset", "= 0"))
    assert subtree(tree, ("providers", "local", "context_window")) == 16000


def test_preset_is_named_as_the_source(command):
    _, out, _ = command("config", "show", "--profile", "tight")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert 'preset = "tight" # its name' in lines
    assert "max_history_messages = 20 # preset tight" in lines


def test_only_provider_is_named_as_such(place, command):
    place.user('[providers.p]\nkind = "openai"')
    _, out, _ = command("config", "show")
    assert 'provider = "p" # the only one' in " ".join(out.split())


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_show_gives_no_secret_away(place, command, form):
    place.user(SECRETS)
    place.env["LOCAL_KEY"] = "hunter1"
    status, out, _ = command("config", "show", *form)
    assert status == 0
    assert "hunter" not in out
    assert "shown" in out
    assert "LOCAL_KEY" in out


def test_json(place, command):
    place.user(USER)
    place.project_file("store = 'x'\n[runtime_profiles.default]\nmax_context_tokens = 8000")
    place.env |= {"WHOLETURN_MODEL": "m", "LOCAL_KEY": "k"}
    _, out, _ = command("config", "show", "--json")
    document = json.loads(out)
    settings = {entry["key"]: entry for entry in document["settings"]}
    user, project = f"{place.home}/config.toml", f"{place.project}/.wholeturn.toml"
    assert document["sources"] == [
        {"source": "user", "name": user},
        {"source": "project", "name": project, "trusted": False},
    ]
    assert settings["agents.default.provider"] == {
        "key": "agents.default.provider",
        "value": "local",
        "source": "user",
        "name": user,
        "line": 2,
    }
    assert settings["agents.default.model"]["name"] == "WHOLETURN_MODEL"
    assert settings["providers.local.api_key_env"]["is_set"] is True
    assert settings["runtime_profiles.default.max_context_tokens"]["line"] == 3
    assert settings["runtime_profiles.default.context_compact_ratio"]["value"] is None
    assert settings["acp.history_trimmed"]["source"] == "default"
    assert len(document["warnings"]) == 1


def test_show_for_another_folder(place, command, tmp_path):
    place.project_file("[runtime_profiles.default]\nmax_context_tokens = 8000")
    _, out, _ = command("config", "show", "--cwd", str(tmp_path))
    assert "max_context_tokens = 32000" in out


def test_faults_go_to_stderr(place, command):
    place.user("agent = 1")
    status, out, err = command("config", "show")
    assert (status, out) == (1, "")
    assert err == f'wholeturn: {place.home}/config.toml:1: agent is no known key; did you mean "agents"?\n'


def test_path(place, command):
    place.user("")
    status, out, _ = command("config", "path")
    assert status == 0
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert rows["user"] == f"{place.home}/config.toml"
    assert rows["project"] == f"{place.project}/.wholeturn.toml (not there)"
    assert rows["trusted"] == f"{place.home}/trusted (not there)"


def test_trust_names_what_it_lets_in_and_is_revoked(place, command):
    place.user(USER)
    place.project_file("\nstore = 'x'\n[runtime_profiles.default]\nmax_context_tokens = 8000")
    status, out, _ = command("trust", ".")
    assert status == 0
    assert f"Trusted: {place.project}/.wholeturn.toml (sha256 " in out
    assert out.splitlines()[1:] == ["  line 2: store now counts"]
    assert str(place.project) in command("trust", "--list")[1]
    assert "(not trusted)" not in command("config", "show")[1]
    assert command("trust", "--revoke", ".")[1] == f"{place.project}: no longer trusted\n"
    assert command("trust", "--revoke", ".")[1] == f"{place.project}: was not trusted\n"
    assert command("trust", "--list")[1] == ""
    assert "(not trusted)" in command("config", "show")[1]


def test_trust_of_a_folder_without_a_file(place, command):
    told = f"wholeturn: {place.project} has no .wholeturn.toml and no prompt files\n"
    assert command("trust", ".") == (1, "", told)


def test_trust_of_a_broken_file(place, command):
    place.project_file("agent = 1")
    status, out, err = command("trust", ".")
    assert (status, out) == (1, "")
    assert ".wholeturn.toml:1: agent is no known key" in err
    assert command("trust", "--list")[1] == ""
