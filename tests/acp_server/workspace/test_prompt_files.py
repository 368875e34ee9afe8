"""Prompt files: which of them become commands, and what is said of the others."""

import os
from pathlib import Path

import pytest

from acp_server.config.project_trust import trust
from acp_server.workspace.prompt_files import (
    MOST_BYTES,
    MOST_FILES,
    command_of,
    commands_for,
    project_prompts,
)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config" / "prompts").mkdir(parents=True)
    (tmp_path / "project" / ".wholeturn" / "prompts").mkdir(parents=True)
    return {"WHOLETURN_CONFIG_DIR": str(tmp_path / "config")}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "config" / "prompts"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".wholeturn" / "prompts"


def names(env: dict[str, str], theirs: Path) -> list[str]:
    return [command.name for command in commands_for(env, theirs.parents[1], {"help"}).commands]


def test_head_and_body():
    made = command_of("fix", "---\ndescription: 'Fix it'\nargument-hint: [issue]\nother: x\n---\n\nFix $1.\n")
    assert (made.name, made.description, made.hint, made.template) == ("fix", "Fix it", "[issue]", "Fix $1.")


@pytest.mark.parametrize(
    ("text", "description", "template"),
    [
        ("# Fix it\n\nNow.\n", "Fix it", "# Fix it\n\nNow."),
        ("---\nno end\n", "---", "---\nno end"),
        ("---\ndescription: only a head\n---\n", "---", "---\ndescription: only a head\n---"),
        ("###\n", "fix", "###"),
        ("x" * 500, "x" * 199 + "…", "x" * 500),
    ],
)
def test_without_a_head_the_first_line_says_what_it_is(text: str, description: str, template: str):
    made = command_of("fix", text)
    assert (made.description, made.template) == (description, template)


def test_the_users_own_counts_before_the_projects_and_ours_before_both(env, own, theirs):
    for folder in (own, theirs):
        (folder / "both.md").write_text(f"of {folder}")
        (folder / "help.md").write_text("x")
    (theirs / "only.md").write_text("x")
    project = theirs.parents[1]
    trust(env, project, "", project_prompts(project).digest)
    found = commands_for(env, project, {"help"})
    assert [command.name for command in found.commands] == ["both", "only"]
    assert str(own) in found.commands[0].template
    assert len([text for text in found.left_out if "already" in text]) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a.md").write_text("y"),
        lambda folder: (folder / "b.md").write_text("x"),
        lambda folder: (folder / "a.md").rename(folder / "c.md"),
    ],
)
def test_any_change_ends_the_trust(env, theirs, change):
    (theirs / "a.md").write_text("x")
    project = theirs.parents[1]
    trust(env, project, "digest of the settings file", project_prompts(project).digest)
    assert names(env, theirs) == ["a"]
    change(theirs)
    assert names(env, theirs) == []


def test_trust_in_the_settings_file_alone_is_none_in_prompts(env, theirs):
    (theirs / "a.md").write_text("x")
    trust(env, theirs.parents[1], "digest")
    assert names(env, theirs) == []


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a b.md", b"x", "a command's name"),
        ("\u202ea.md", b"x", "a command's name"),
        ("-a.md", b"x", "a command's name"),
        ("x" * 41 + ".md", b"x", "a command's name"),
        ("a.md", b"", "it is empty"),
        ("a.md", b"\xff\xfe\x00", "it is no UTF-8 text"),
        ("a.md", b"x" * (MOST_BYTES + 1), "it is larger than"),
    ],
)
def test_what_cannot_be_a_command_is_named(env, own, theirs, name, content, why):
    (own / name).write_bytes(content)
    found = commands_for(env, theirs.parents[1], ())
    assert found.commands == ()
    (told,) = found.left_out
    assert why in told
    assert told.isprintable()


def test_special_files_and_links(env, own, theirs):
    outside = own.parent / "outside.md"
    outside.write_text("x")
    os.mkfifo(own / "pipe.md")
    (own / "folder.md").mkdir()
    (own / "mine.md").symlink_to(outside)
    (own / "lost.md").symlink_to(own / "nowhere")
    assert names(env, theirs) == ["mine"]
    (theirs / "leads.md").symlink_to(outside)
    found = project_prompts(theirs.parents[1])
    assert (found.commands, found.digest) == ((), "")
    assert found.left_out == ("The prompt file leads.md is left out: it leads out of the project.",)


def test_very_many_are_few(env, own, theirs):
    for number in range(MOST_FILES + 5):
        (own / f"c{number:03}.md").write_text("x")
    found = commands_for(env, theirs.parents[1], ())
    assert len(found.commands) == MOST_FILES
    assert len(found.left_out) == 1
