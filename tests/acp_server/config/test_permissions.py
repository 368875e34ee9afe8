"""Permission in the settings: rules of all sources, faults with their place; answers on the command line."""

import argparse
from pathlib import Path

import pytest

from acp_server.assembly.session_setup import make_setup
from acp_server.cli import permissions as commands
from acp_server.config.build import build
from acp_server.config.merge import Merged
from acp_server.config.paths import answers_dir
from acp_server.config.project_trust import trust
from acp_server.config.settings import PermissionSettings
from runtime.permission.remembered_answers import Remembered
from runtime.permission.rules import Rule
from runtime.values.errors import ConfigError
from tests.acp_server.config.conftest import USER

MINE = f"""{USER}
[permissions]
mode = "accept_edits"
allow = ["run_command:git status*"]
deny = ["run_command:rm*"]
"""
THEIRS = """\
[permissions]
mode = "yolo"
allow = ["run_command:make check*"]
ask = ["fetch_url"]
deny = []
"""


def test_without_settings_every_session_asks(place):
    found = place.session().permissions
    assert found == PermissionSettings(answers=str(place.home / "permissions"))
    assert found.mode == "ask"


def test_the_rules_of_the_user(place):
    place.user(MINE)
    found = place.session().permissions
    assert (found.mode, found.allow, found.ask, found.deny) == (
        "accept_edits",
        ("run_command:git status*",),
        (),
        ("run_command:rm*",),
    )


def test_an_untrusted_folder_changes_nothing(place):
    place.user(MINE)
    before = place.session().permissions
    place.project_file(THEIRS)
    config = place.session()
    assert config.permissions == before
    assert [warning.split(" ")[1] for warning in config.warnings] == [
        f"permissions.{word}" for word in ("mode", "allow", "ask", "deny")
    ]


def test_a_trusted_folder_adds_rules_and_takes_none_back(place):
    place.user(MINE)
    place.project_file(THEIRS)
    trust(place.env, place.project, place.view().layers[1].digest)
    found = place.session().permissions
    assert (found.mode, found.allow, found.ask, found.deny) == (
        "yolo",
        ("run_command:git status*", "run_command:make check*"),
        ("fetch_url",),
        ("run_command:rm*",),
    )


def test_the_mode_by_flag_and_by_variable(place):
    place.user(MINE)
    place.env["WHOLETURN_MODE"] = "plan"
    assert place.session().permissions.mode == "plan"
    assert place.session(mode="yolo").permissions.mode == "yolo"
    with pytest.raises(ConfigError, match=r'--mode: .* must be one of ask, .*did you mean "yolo"'):
        place.load(mode="yolos")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('allow = ["run_comand:ls*"]', 'names no tool that is there; did you mean "run_command"?'),
        ('deny = ["edit_fil"]', 'did you mean "edit_file"?'),
        ('deny = ["mcp__x__y:z"]', "can have no pattern"),
        ('ask = ["update_plan:x"]', "can have no pattern"),
        ('allow = ["run_command:sudo*"]', "would allow nothing"),
        ('allow = ["*"]', 'that is what mode = "yolo" is for'),
        ('ask = ["run_command:a;b"]', "must be one command"),
        ('allow = "ls"', "must be a list"),
        ("allow = [1]", "must be a list of texts in quotes"),
        ('mode = "askk"', 'did you mean "ask"?'),
        ('alow = ["x"]', 'did you mean "allow"?'),
    ],
)
def test_a_fault_names_its_line(place, line, told):
    path = place.user(f"[permissions]\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert str(caught.value).startswith(f"{path}:2: permissions.")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "rule", ["mcp__git__*", "edit_*", "search_text:src/**", "fetch_url:example.org", "*"]
)
def test_rules_that_are_taken(place, rule):
    place.user(f'[permissions]\ndeny = ["{rule}"]\n')
    assert place.session().permissions.deny == (rule,)


def test_a_session_runs_with_them(place):
    place.user(MINE)

    async def nobody(_: object) -> object:
        raise AssertionError

    found = make_setup(place.session(), nobody).permission  # type: ignore[arg-type]
    assert (found.mode, found.deny) == ("accept_edits", (Rule("run_command", "rm*"),))
    assert found.answers == place.home / "permissions"


def test_without_a_home_no_answer_is_kept(monkeypatch):
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert answers_dir({}) == ""
    config = build(Merged(), {"WHOLETURN_DATA_DIR": "/d"})
    assert config.permissions.answers == ""


@pytest.fixture
def command(place, monkeypatch, capsys):
    monkeypatch.chdir(place.project)
    monkeypatch.setenv("WHOLETURN_CONFIG_DIR", str(place.home))

    def run(*words):
        parser = argparse.ArgumentParser()
        commands.register(parser.add_subparsers())
        args = parser.parse_args(["permissions", *words])
        status = args.run(args)
        return (status, *capsys.readouterr())

    return run


def keep(place, folder: Path, effect="allow", pattern="npm test*"):
    Remembered(place.home / "permissions", folder).add(effect, [Rule("run_command", pattern)])


def test_no_answers(command):
    assert command("list") == (0, "No answer is kept: every question is asked again.\n", "")


def test_answers_are_listed_by_project(place, command, tmp_path):
    keep(place, place.project)
    keep(place, place.project, "deny", "npm publish*")
    keep(place, tmp_path / "other")
    here = f"{place.project}\n  always run_command:npm test*\n  never  run_command:npm publish*\n"
    there = f"{tmp_path}/other\n  always run_command:npm test*\n"
    assert command("list") == (0, there + here, "")
    assert command("list", "--cwd", ".") == (0, here, "")


def test_an_answer_is_forgotten(place, command, tmp_path):
    keep(place, place.project)
    keep(place, tmp_path / "other")
    assert command("forget", "run_command:npm test*") == (0, "Forgotten: run_command:npm test*\n", "")
    status, _, told = command("forget", "run_command:npm test*")
    assert (status, "is not among the answers" in told) == (1, True)
    assert command("forget", "--all", "--cwd", str(tmp_path / "other"))[0] == 0
    assert command("list")[1].startswith("No answer")
