"""Each editor's page: its configuration is what the editor documents, and starts this installation."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from acp_server.cli.editors import COMMAND, EDITORS, Editor, configuration, own_command, page
from runtime.values.errors import WholeturnError
from tests.editors import formats
from tests.editors.lisp import call_of, keywords, read
from tests.editors.lua_setup import plain, plugin_options

NAMED = {editor.name: editor for editor in EDITORS}
ROOT = Path(__file__).resolve().parents[2]
# A path of a person who likes trouble.
ODD = '/home/o\'hara/my "tools"/wholeturn \\ $HOME é'

Launch = tuple[str, list[str], Mapping[str, str]]
"""The command, its arguments and the variables that an editor would start it with."""


def none(found: list[str]) -> None:
    """Fails with all that was found."""
    assert found == []


def zed(text: str) -> Launch:
    """As Zed reads it."""
    settings = json.loads(text)
    assert list(settings) == ["agent_servers"]
    (entry,) = settings["agent_servers"].values()
    none(formats.ZED.faults(entry))
    assert entry["type"] == "custom"
    return entry["command"], entry["args"], entry["env"]


def jetbrains(text: str) -> Launch:
    """As a JetBrains IDE reads it."""
    settings = json.loads(text)
    none(formats.JETBRAINS_FILE.faults(settings))
    (entry,) = settings["agent_servers"].values()
    none(formats.JETBRAINS.faults(entry))
    return entry["command"], entry["args"], entry["env"]


def codecompanion(text: str) -> Launch:
    """As CodeCompanion reads it."""
    options = plugin_options(text, "codecompanion")
    (name, make), *others = options["adapters"]["acp"].items()
    assert others == []
    adapter = plain(make())
    none(formats.CODECOMPANION.faults(adapter))
    none(formats.CODECOMPANION_DEFAULTS.faults(adapter["defaults"]))
    assert adapter["name"] == name == options["interactions"]["chat"]["adapter"]
    assert adapter["handlers"]["auth"]() is True
    command, *arguments = adapter["commands"]["default"]
    return command, arguments, adapter.get("env", {})


def avante(text: str) -> Launch:
    """As avante reads it."""
    options = plugin_options(text, "avante")
    entry = options["acp_providers"][options["provider"]]
    none(formats.AVANTE.faults(entry))
    return entry["command"], list(entry["args"]), entry["env"]


def agent_shell(text: str) -> Launch:
    """As agent-shell reads it."""
    config = keywords(call_of(read(text), "agent-shell-make-agent-config"))
    none(formats.AGENT_SHELL.faults(config))
    client = keywords(call_of(config[":client-maker"], "acp-make-client"))
    none(formats.ACP_CLIENT.faults(client))
    assert (client[":command-params"], client[":environment-variables"]) == ("nil", "nil")
    return json.loads(str(client[":command"])), [], {}


def toad(text: str) -> Launch:
    """As a shell gives it to Toad, which gives it to a shell."""
    program, verb, command, folder, *options = shlex.split(text)
    assert (program, verb, folder) == ("toad", "acp", ".")
    assert options[0] in formats.TOAD_OPTIONS
    first, *arguments = shlex.split(command)
    return first, arguments, {}


def acpx(text: str) -> Launch:
    """As acpx reads it."""
    settings = json.loads(text)
    none(formats.ACPX_FILE.faults(settings))
    none(formats.ACPX.faults(settings["agents"]["wholeturn"]))
    command, *arguments = settings["agents"]["wholeturn"]["argv"]
    return command, arguments, {}


READERS: dict[str, Callable[[str], Launch]] = {
    "zed": zed,
    "jetbrains": jetbrains,
    "codecompanion": codecompanion,
    "avante": avante,
    "agent-shell": agent_shell,
    "toad": toad,
    "acpx": acpx,
}


def test_every_editor_has_a_reader_and_a_page_and_stands_in_the_readme():
    assert list(READERS) == list(NAMED)
    folder = ROOT / "acp_server" / "programs" / "editors"
    assert {path.stem for path in folder.glob("*.md")} == set(NAMED)
    readme = (ROOT / "README.md").read_text()
    assert [name for name in NAMED if f"acp_server/programs/editors/{name}.md" not in readme] == []


@pytest.mark.parametrize("name", NAMED)
def test_the_shipped_configuration_starts_the_command(name: str):
    assert READERS[name](configuration(NAMED[name])) == (COMMAND, [], {})
    assert configuration(NAMED[name]) in page(NAMED[name])


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("command", ["/opt/wholeturn/bin/wholeturn", ODD])
def test_a_whole_path_comes_to_the_editor_as_it_is(name: str, command: str):
    assert READERS[name](configuration(NAMED[name], command)) == (command, [], {})


@pytest.mark.parametrize("name", NAMED)
def test_the_command_printed_is_an_executable_of_this_installation(name: str):
    command, arguments, env = READERS[name](printed("editors", name, "--snippet"))
    assert os.path.isabs(command)
    assert shutil.which(command) == command
    assert (arguments, dict(env)) == ([], {})
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("wholeturn ")


def printed(*arguments: str) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "acp_server", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_without_a_name_all_are_listed_and_with_one_the_page_is_shown():
    listed = printed("editors").splitlines()
    assert [line.split()[0] for line in listed] == list(NAMED)
    shown = printed("editors", "zed")
    assert shown.startswith("# Zed\n")
    assert f'"command": "{own_command()}"' in shown


def test_the_command_that_was_called_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    link = tmp_path / "wholeturn"
    link.symlink_to(own_command())
    monkeypatch.setattr(sys, "argv", [str(link)])
    assert own_command() == str(link)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "gone" / "wholeturn")])
    assert own_command() == str(Path(sys.executable).with_name("wholeturn"))


def test_without_any_command_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["-m"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WholeturnError, match="install it"):
        own_command()


BROKEN: list[tuple[str, str, str]] = [
    ("zed", '"type": "custom",', ""),
    ("zed", '"args"', '"arguments"'),
    ("jetbrains", '"command"', '"cmd"'),
    ("codecompanion", "commands", "command"),
    ("avante", "args = {}", "args = 5"),
    ("agent-shell", ":client-maker", ":client"),
    ("acpx", '"argv"', '"command"'),
    ("toad", "--title", "--name"),
]


@pytest.mark.parametrize(("name", "right", "wrong"), BROKEN)
def test_a_configuration_that_is_not_as_documented_is_noticed(name: str, right: str, wrong: str):
    text = configuration(NAMED[name])
    assert right in text
    with pytest.raises((AssertionError, KeyError)):
        READERS[name](text.replace(right, wrong, 1))


def test_the_lisp_is_read_by_emacs_where_there_is_one(tmp_path: Path):
    emacs = shutil.which("emacs")
    if emacs is None:
        pytest.skip("no Emacs here; the test above reads the same text")
    file = tmp_path / "init.el"
    file.write_text(EMACS_STAND_INS + configuration(NAMED["agent-shell"], ODD) + EMACS_ASKS)
    done = subprocess.run(
        [emacs, "-Q", "--batch", "-l", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == ODD, done.stderr


EMACS_STAND_INS = """\
(require 'cl-lib)
(setq agent-shell-agent-configs nil)
(cl-defun acp-make-client (&key command command-params environment-variables context-buffer) command)
(cl-defun agent-shell-make-agent-config (&key identifier mode-line-name buffer-name shell-prompt
                                              shell-prompt-regexp client-maker install-instructions)
  client-maker)
(provide 'agent-shell)
"""
EMACS_ASKS = "(princ (funcall (car agent-shell-agent-configs) nil))\n"


def entry(editor: Editor) -> Any:
    """The server's entry of a JSON configuration."""
    return next(iter(json.loads(configuration(editor))["agent_servers"].values()))


def test_zed_and_jetbrains_say_the_same():
    assert entry(NAMED["zed"]) == {"type": "custom", **entry(NAMED["jetbrains"])}
