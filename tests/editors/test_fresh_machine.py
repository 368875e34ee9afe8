"""From the wheel to a conversation in an editor, by the documented steps, on a machine that has nothing."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mock_text import prompt_text, reply_text
from tests.clients.acpx_client import CLI
from tests.clients.rigs import NODE, converse, install_node_clients, problems
from tests.editors.fresh import built, installed

TURNS = 4
REPLY_CHARS = 300


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands after `pipx install` or `uv tool install` of the wheel."""
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "dist").mkdir()
    return installed(built("wheel", folder / "dist"), folder / "tool")


def desktop(home: Path) -> dict[str, str]:
    """The variables of a desktop session: no PATH of a shell, none of ours."""
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "PATH": "/usr/bin:/bin"}


def run(commands: Path, home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command of the new installation, called by its whole path."""
    return subprocess.run(
        [str(commands / "wholeturn"), *arguments],
        env=desktop(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
    )


def as_zed_expands(settings: str, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command line and the variables with which Zed starts the one agent of its settings."""
    (entry,) = json.loads(settings)["agent_servers"].values()
    assert entry["type"] == "custom"
    return [entry["command"], *entry["args"]], {**env, **entry["env"]}


def test_only_the_wheel_and_what_it_asks_for_is_there(commands: Path, tmp_path: Path):
    done = run(commands, tmp_path / "home", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    asked = "import acp_server, importlib.util as u; print(acp_server.__file__); print(u.find_spec('pytest'))"
    python = [str(commands / "python"), "-c", asked]
    told = subprocess.run(python, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert told.stdout.splitlines()[0].startswith(str(commands.parent))
    assert told.stdout.splitlines()[1] == "None"


def test_the_documented_steps_end_in_a_conversation(
    commands: Path, tmp_path: Path, mock_model: Callable[..., str]
):
    home, work = tmp_path / "person", tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("nothing yet\n")
    url = mock_model(reply_chars=REPLY_CHARS, chunks=6, tool_loop=1, tool_path="notes.txt")
    setup = ["setup", "--provider", "custom", "--base-url", f"{url}/v1", "--model", "mock-model", "--no-key"]
    told = run(commands, home, *setup, "--context-window", "16000")
    assert told.returncode == 0, told.stderr
    snippet = run(commands, home, "editors", "zed", "--snippet").stdout
    command, env = as_zed_expands(snippet, desktop(home))
    assert command == [str(commands / "wholeturn")]
    talk = converse(
        "typescript", command, tmp_path, [prompt_text(turn, 100) for turn in range(1, TURNS + 1)], env
    )
    replies = [reply_text(turn, REPLY_CHARS) for turn in range(1, TURNS + 1)]
    assert problems(talk, replies, trims=0) == []
    assert talk.summary["asked"]["fs/read_text_file"] >= TURNS


def test_the_doctor_is_content_afterwards(commands: Path, tmp_path: Path, mock_model: Callable[..., str]):
    home = tmp_path / "person"
    setup = ["setup", "--provider", "custom", "--base-url", f"{mock_model()}/v1", "--model", "m", "--no-key"]
    assert run(commands, home, "doctor", "--json").returncode == 1
    assert run(commands, home, *setup).returncode == 0
    told = run(commands, home, "doctor", "--json")
    found = json.loads(told.stdout)
    assert (told.returncode, found["ok"]) == (0, True), found
    checks = {finding["check"]: finding for finding in found["findings"]}
    assert checks["answer"]["status"] == "ok"
    assert checks["start"]["status"] in ("ok", "note")


@pytest.mark.parametrize("name", ["wholeturn.1", "wholeturn.bash", "wholeturn.zsh", "wholeturn.fish"])
def test_what_was_made_of_the_command_line_comes_along(commands: Path, tmp_path: Path, name: str):
    shell = name.rpartition(".")[2]
    done = run(commands, tmp_path / "home", *(["man"] if shell == "1" else ["completion", shell]))
    assert done.returncode == 0
    assert "wholeturn" in done.stdout


def test_acpx_finds_the_agent_by_its_configuration(
    commands: Path, tmp_path: Path, mock_model: Callable[..., str]
):
    """The real acpx, with the file that its page says."""
    home, work = tmp_path / "person", tmp_path / "work"
    work.mkdir()
    url = mock_model(reply_chars=REPLY_CHARS)
    setup = ["setup", "--provider", "custom", "--base-url", f"{url}/v1", "--model", "mock-model", "--no-key"]
    assert run(commands, home, *setup).returncode == 0
    (home / ".acpx").mkdir()
    snippet = run(commands, home, "editors", "acpx", "--snippet").stdout
    (home / ".acpx" / "config.json").write_text(snippet)
    install_node_clients()
    asked = [str(NODE), str(CLI), "--cwd", str(work), "wholeturn", "exec", prompt_text(1, 100)]
    done = subprocess.run(asked, env=desktop(home), cwd=work, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert " ".join(reply_text(1, REPLY_CHARS).split()[:20]) in " ".join(done.stdout.split())
