"""Settings: broken files, values and their places, what has no effect, trust, extras, MCP servers."""

import sys

import pytest

from acp_server.assembly.extras import MODULES
from acp_server.config import project_trust
from acp_server.config.load import project_layer
from acp_server.doctor import settings as checks
from acp_server.doctor.finding import Read
from acp_server.workspace.prompt_files import project_prompts
from tests.acp_server.doctor.rigs import Machine, only, rows

SETTINGS = """\
[providers.m]
kind = "openai"
base_url = "http://user:pass@127.0.0.1:1/v1?token=abc"
model = "m"
headers = { X-Key = "secret" }
"""


def test_no_file_is_no_fault(machine: Machine):
    read, told = checks.read_settings(machine.place)
    assert read is not None
    assert only(told, "settings").status == "ok"
    assert "config.toml" in only(told, "settings").text


def test_files_that_were_read_are_named(machine: Machine):
    machine.settings(SETTINGS)
    (machine.root / "work" / ".wholeturn.toml").write_text(
        "[runtime_profiles.default]\ntrim_slack_ratio = 0.1\n"
    )
    _, told = checks.read_settings(machine.place)
    assert [finding.text.rpartition("/")[2] for finding in told] == ["config.toml", ".wholeturn.toml"]


@pytest.mark.parametrize(
    "text", ["[providers", "[providers.m]\nknd = 'openai'\n", "default_agent = 'nobody'\n"]
)
def test_a_broken_file_is_named_with_its_line(machine: Machine, text: str):
    machine.settings(text)
    read, told = checks.read_settings(machine.place)
    assert read is None
    assert told[0].status == "bad"
    assert any("config.toml" in finding.text for finding in told)
    assert all(finding.mend for finding in told)


def test_each_value_has_its_place_and_no_secret_shows(machine: Machine):
    machine.settings(SETTINGS)
    machine.env["WHOLETURN_PROFILE"] = "tight"
    shown = [finding.text for finding in checks.check_origins(machine.read())]
    assert any(
        text.startswith("providers.m.model = m (") and text.endswith("config.toml:4)") for text in shown
    )
    assert any("WHOLETURN_PROFILE" in text for text in shown)
    for secret in ("user", "pass", "abc", "secret"):
        assert not any(secret in text for text in shown)


def test_values_that_nobody_wrote_are_not_listed(machine: Machine):
    assert list(checks.check_origins(machine.read())) == []


def test_a_variable_that_nothing_reads(machine: Machine):
    assert list(checks.check_effects(machine.read())) == []
    machine.env["WHOLETURN_MODLE"] = "x"
    found = only(checks.check_effects(machine.read()), "settings")
    assert found.status == "note"
    assert "WHOLETURN_MODLE" in found.text


@pytest.mark.parametrize(("level", "count"), [("debug", 0), ("INFO", 0), ("loud", 1), ("", 0)])
def test_the_level_of_the_log(machine: Machine, level: str, count: int):
    machine.env["WHOLETURN_LOG"] = level
    assert len(list(checks.check_effects(machine.read()))) == count


def test_a_folder_that_brings_nothing(machine: Machine):
    assert only(checks.check_trust(machine.read()), "trust").status == "ok"


def test_a_folder_that_is_not_trusted_and_then_is(machine: Machine):
    work = machine.root / "work"
    (work / ".wholeturn.toml").write_text("[runtime_profiles.default]\ntrim_slack_ratio = 0.1\n")
    prompts = work / ".wholeturn" / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "fix.md").write_text("Fix it.")
    found = only(checks.check_trust(machine.read()), "trust")
    assert found.status == "note"
    assert "settings" in found.text
    assert "prompt files" in found.text
    assert f"wholeturn trust {work}" in found.mend
    layer = project_layer(work)
    assert layer is not None
    project_trust.trust(machine.place.env, work, layer.digest, project_prompts(work).digest)
    assert only(checks.check_trust(machine.read()), "trust").status == "ok"
    (prompts / "fix.md").write_text("Fix it otherwise.")
    assert "prompt files" in only(checks.check_trust(machine.read()), "trust").text


NEEDING = {
    "local": '[providers.l]\nkind = "local"\nmodel = "smollm2"\n',
    "tokens": SETTINGS + 'token_counter = "o200k_base"\n',
}


def needing(machine: Machine, extra: str) -> Read:
    """Settings that need an extra."""
    machine.settings(NEEDING.get(extra, ""))
    read = machine.read()
    if extra == "postgres":
        config = read.view.config._replace(store="postgresql://127.0.0.1/x")
        return Read(read.place, read.view._replace(config=config))
    return read


@pytest.mark.parametrize("extra", checks.EXTRAS)
def test_an_extra_that_the_settings_need(machine: Machine, extra: str, monkeypatch: pytest.MonkeyPatch):
    read = needing(machine, extra)
    monkeypatch.setattr(checks, "find_spec", lambda name: object())
    assert rows(checks.check_extras(read)) == [("extras", "ok")]
    module = MODULES[extra][0]
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == module else object())
    (bad,) = [finding for finding in checks.check_extras(read) if finding.status == "bad"]
    assert f"wholeturn[{extra}]" in bad.mend


def test_an_extra_that_nothing_needs(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    found = only(checks.check_extras(machine.read()), "extras")
    assert (found.status, found.text) == ("ok", "installed: none")


SERVER = """\
[mcp_servers.{name}]
command = "{command}"
pass_env = ["TOKEN_OF_MINE"]
enabled = {enabled}
"""


@pytest.mark.parametrize("command", ["server", sys.executable])
def test_an_mcp_server_that_can_be_started(machine: Machine, command: str):
    machine.program("server")
    machine.env["TOKEN_OF_MINE"] = "t0psecret"
    machine.settings(SERVER.format(name="one", command=command, enabled="true"))
    found = only(checks.check_servers(machine.read()), "mcp")
    assert found.status == "ok"
    assert "t0psecret" not in found.text


def test_an_mcp_server_whose_command_and_variable_are_missing(machine: Machine):
    machine.settings(SERVER.format(name="one", command="server", enabled="true"))
    assert rows(checks.check_servers(machine.read())) == [("mcp", "bad"), ("mcp", "note")]


def test_an_mcp_server_that_is_off_or_elsewhere(machine: Machine):
    machine.settings(
        SERVER.format(name="one", command="server", enabled="false")
        + '[mcp_servers.two]\nurl = "http://127.0.0.1:1/mcp"\n'
    )
    assert list(checks.check_servers(machine.read())) == []
