"""The manual page and the completions: up to date, read by the programs that they are for, and right."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import shell_files
from acp_server.cli.main import COMMANDS, make_parser, run

FILES = shell_files.FOLDER
# What bash does when Tab is pressed: the words, then the number of the last one.
ASK_BASH = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE="${COMP_WORDS[*]}"
COMP_POINT=${#COMP_LINE}
COMP_TYPE=9
function_name=$(complete -p wholeturn | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function_name" wholeturn "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """What the command line makes now."""
    return shell_files.made()


def test_the_files_are_what_the_command_line_makes(made: dict[str, str]):
    assert {path.name for path in FILES.iterdir()} == set(made)
    stale = [name for name, text in made.items() if (FILES / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run scripts/fix"


def test_the_published_schema_of_a_stream_is_the_one_in_force():
    assert shell_files.STREAM_SCHEMA.read_text(encoding="utf-8") == shell_files.stream_schema_text()


def test_every_command_is_in_the_page_and_in_each_completion(made: dict[str, str]):
    for command in COMMANDS:
        assert f".SS wholeturn {command}" in made["wholeturn.1"]
        for shell in ("bash", "zsh", "fish"):
            assert command in made[f"wholeturn.{shell}"]


def test_the_whole_parser_has_each_command_once_and_each_does_something():
    names = shell_files.children(make_parser([], whole=True))
    assert set(names) == set(COMMANDS)
    for parser in names.values():
        leaves = shell_files.children(parser).values() or [parser]
        assert all("run" in leaf._defaults or "run" in parser._defaults for leaf in leaves)


def bash_offers(*words: str, cwd: Path) -> list[str]:
    """What bash offers for the last word, which may be begun."""
    command = ["bash", "--norc", "--noprofile", "-c", ASK_BASH, "-", str(FILES / "wholeturn.bash"), *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def test_bash_offers_the_commands(tmp_path: Path):
    assert set(COMMANDS) <= set(bash_offers("wholeturn", "", cwd=tmp_path))
    assert bash_offers("wholeturn", "doc", cwd=tmp_path) == ["doctor"]


def test_bash_offers_what_a_command_takes(tmp_path: Path):
    assert bash_offers("wholeturn", "doctor", "--off", cwd=tmp_path) == ["--offline"]
    assert set(bash_offers("wholeturn", "editors", "", cwd=tmp_path)) >= {"zed", "jetbrains", "acpx"}
    assert set(bash_offers("wholeturn", "run", "--output", "", cwd=tmp_path)) == {
        "text",
        "json",
        "stream-json",
    }
    assert "gc" in bash_offers("wholeturn", "sessions", "", cwd=tmp_path)


def test_bash_offers_files_and_folders_where_they_go(tmp_path: Path):
    (tmp_path / "mine.toml").touch()
    (tmp_path / "folder").mkdir()
    assert "mine.toml" in bash_offers("wholeturn", "doctor", "--config", "mi", cwd=tmp_path)
    assert bash_offers("wholeturn", "doctor", "--cwd", "", cwd=tmp_path) == ["folder"]


CHECKS: list[tuple[str, list[str]]] = [
    ("bash", ["-n", "wholeturn.bash"]),
    ("zsh", ["-n", "wholeturn.zsh"]),
    ("fish", ["--no-execute", "wholeturn.fish"]),
    ("mandoc", ["-Tlint", "-Werror", "wholeturn.1"]),
    ("groff", ["-man", "-ww", "-z", "wholeturn.1"]),
]


@pytest.mark.parametrize(("program", "arguments"), CHECKS, ids=[program for program, _ in CHECKS])
def test_the_program_that_it_is_for_can_read_it(program: str, arguments: list[str]):
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program} here")
    done = subprocess.run([found, *arguments], cwd=FILES, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_offers_the_commands(tmp_path: Path):
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("no fish here")
    script = f"source {FILES / 'wholeturn.fish'}; complete -C 'wholeturn doc'"
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    shutil.copy("/bin/true", tmp_path / "wholeturn")
    done = subprocess.run(
        [fish, "--no-config", "-c", script], env=env, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.split("\t")[0] == "doctor"


def test_man_shows_it():
    man = shutil.which("man")
    if man is None:
        pytest.skip("no man here")
    env = {**os.environ, "MANPAGER": "cat", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
    command = [man, str(FILES / "wholeturn.1")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    assert "EXIT STATUS" in done.stdout
    assert "wholeturn sessions gc" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_prints_the_file(shell: str, capsys: pytest.CaptureFixture[str]):
    assert run(["completion", shell]) == 0
    assert capsys.readouterr().out == (FILES / f"wholeturn.{shell}").read_text()


def test_the_page_goes_into_a_pipe_as_it_is(capsys: pytest.CaptureFixture[str]):
    assert run(["man"]) == 0
    assert capsys.readouterr().out == (FILES / "wholeturn.1").read_text()


ODD_TEXTS: list[tuple[str, str]] = [
    (".hidden", "\\&.hidden"),
    ("'quoted", "\\&'quoted"),
    ("a-b", "a\\-b"),
    ("wait …", "wait \\[u2026]"),
    ("back\\slash", "back\\eslash"),
]


@pytest.mark.parametrize(("text", "written"), ODD_TEXTS)
def test_text_stays_text_in_the_page(text: str, written: str):
    assert shell_files.quoted(text) == written


def test_a_stale_file_is_noticed(made: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "wholeturn.1").write_text("old")
    monkeypatch.setattr(sys.modules[__name__], "FILES", tmp_path)
    check: Callable[[dict[str, str]], None] = test_the_files_are_what_the_command_line_makes
    with pytest.raises(AssertionError, match="scripts/fix"):
        check(made)
