"""What a person is asked about: files that may hold secrets, files that make others run, names that hide."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time

import pytest

from runtime.tools.files.list_dir import ListDir
from runtime.tools.files.read_file import ReadFile
from runtime.tools.files.write_file import WriteFile
from runtime.tools.sandbox import ignore_files
from runtime.tools.sandbox.roots import Place
from runtime.tools.sandbox.sensitive_files import (
    has_secret_name,
    hides_something,
    is_secret,
    plain,
    risk_of_writing,
)
from runtime.tools.search.search_text import SearchText
from tests.runtime.tools.support import context, text_of, write

SECRET = [
    ".env",
    ".env.local",
    "prod.env",
    ".ENV",
    "server.key",
    "id_rsa",
    "id_ed25519_work",
    ".netrc",
    "secrets.yaml",
]
SECRET += [
    ".npmrc",
    "credentials.json",
    "x.tfstate",
    ".e\u200bnv",
    "．env",
    ".env.",
    "a/.ssh/config",
    ".aws/config",
]
PLAIN = [
    "env.py",
    ".env.example",
    ".env.sample",
    "secrets.py",
    "id_rsa.pub",
    "keys.md",
    "key",
    "environment",
    ".envoy",
]


@pytest.mark.parametrize("path", SECRET)
def test_names_of_secrets(path):
    assert has_secret_name(path.split("/"))


@pytest.mark.parametrize("path", PLAIN)
def test_names_of_others(path):
    assert not has_secret_name(path.split("/"))


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("config/local.yml", True),  # named by a rule
        ("notes.txt", True),  # named by a rule in its own folder's file
        ("node_modules/x/index.js", False),  # in a folder that is
        ("build/app.js", False),  # by a rule about everything in one
        ("venv/lib.py", False),
        ("server.log", False),  # by a rule about what tools make
        ("kept.yml", False),  # named and taken out again
        ("private/key.txt", True),  # an ignore file for agents counts for folders
        ("src/app.py", False),
    ],
)
async def test_ignore_rules(tmp_path, path, asked):
    rules = "node_modules/\nbuild/*\n*.log\n/config/local.yml\nnotes.txt\nkept.yml\n!kept.yml\n"
    write(tmp_path, {".gitignore": rules, "venv/.gitignore": "*\n", ".aiignore": "private/\n"})
    write(tmp_path, {path: "x"})
    request = await ReadFile().request({"path": path}, context(tmp_path))
    assert (request.action, request.secret, request.outside) == ("read", asked, False)


@pytest.mark.parametrize(
    ("path", "word"),
    [
        (".git/hooks/pre-commit", "git runs"),
        (".GIT/config", "git runs"),
        ("sub/.git\u200b/config", "cannot be seen"),
        (".vscode/tasks.json", "editor"),
        (".github/workflows/x.yml", "build server"),
        (".wholeturn.toml", "this agent's own settings"),
        (".envrc", "a shell runs it"),
        ("src/\u202eyp.a", "cannot be seen"),
        ("src/app.py", ""),
        (".gitignore", ""),
    ],
)
async def test_risk_of_a_change(tmp_path, path, word):
    write(tmp_path, {path: "old"})
    request = await WriteFile().request({"path": path, "content": "new"}, context(tmp_path))
    assert word in request.risk
    assert bool(request.risk) is bool(word)


async def test_reading_is_no_risk_unless_the_name_hides(tmp_path):
    write(tmp_path, {".git/config": "x", "a\u200b.txt": "x"})
    assert (await ReadFile().request({"path": ".git/config"}, context(tmp_path))).risk == ""
    assert (await ReadFile().request({"path": "a\u200b.txt"}, context(tmp_path))).risk != ""
    assert (await ListDir().request({}, context(tmp_path))).risk == ""


@pytest.mark.parametrize(
    "text", ["a\u200bb", "a\u202eb", "\u3164", "a\u00a0b", "tab\tin", "\ufe0fx", "a\u00adb"]
)
def test_what_hides(text):
    assert hides_something(text)


@pytest.mark.parametrize("text", ["plain name.txt", "ünï/漢/и.py", "a-b_c.d"])
def test_what_does_not(text):
    assert not hides_something(text)


def test_a_name_as_a_careless_reader_takes_it():
    assert plain(".G\u200bIT. ") == ".git"
    assert risk_of_writing(("a", "．git", "x")) != ""


@pytest.mark.parametrize("path", ["HEAD", "sub/head", ".hg/hgrc", ".claude/settings.json", ".devcontainer/x"])
def test_what_makes_others_run(path):
    assert risk_of_writing(tuple(path.split("/"))) != ""


@pytest.mark.parametrize("path", ["head/index.ts", "HEAD.md", "src/claude.py", "config"])
def test_what_makes_nobody_run(path):
    assert risk_of_writing(tuple(path.split("/"))) == ""


def test_a_path_of_thousands_of_names_takes_no_time(tmp_path):
    began = process_time()
    assert not is_secret(Place(tmp_path, ("x",) * 2000, "x"))
    assert process_time() - began < 3


async def test_a_search_leaves_secrets_out_unless_they_are_named(tmp_path):
    files = {
        "app.py": "needle\n",
        ".env": "needle=1\n",
        "sub/.ENV.local": "needle=2\n",
        "kept.pem": "needle\n",
    }
    write(tmp_path, files)
    for tool in (SearchText(), SearchText(find_ripgrep=lambda roots: None)):
        found = await text_of(tool, context(tmp_path), pattern="needle")
        assert (
            found == "app.py:1: needle\n[1 matching line in 1 file; 3 files that may hold secrets left out]"
        )
        named = await text_of(tool, context(tmp_path), pattern="needle", path=".env")
        assert named.startswith(".env:1: needle=1")
        assert (await tool.request({"pattern": "x", "path": ".env"}, context(tmp_path))).secret


def test_an_ignore_file_that_comes_later_counts_at_once(tmp_path: Path):
    """Folders that were found to have none are remembered, until something comes into them."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "notes.txt").write_text("x")
    place = Place(tmp_path, ("a", "b", "notes.txt"), "a/b/notes.txt")
    for folder in (deep, deep.parent, tmp_path):
        os.utime(folder, (0, 0))
    for settled in (False, True):
        with clock_by_which_folders_are(settled):
            assert not is_secret(place, local=True)
            assert not is_secret(place, local=True)
            for folder in (deep, deep.parent, tmp_path):
                rules = folder / ".gitignore"
                rules.write_text("notes.txt\n")
                assert is_secret(place, local=True), folder
                rules.write_text("others.txt\n")
                assert not is_secret(place, local=True), folder
                rules.write_text("notes.txt\n")
                assert is_secret(place, local=True), folder
                rules.unlink()
                assert not is_secret(place, local=True), folder


@contextmanager
def clock_by_which_folders_are(settled: bool) -> Iterator[None]:
    """A clock by which every folder has, or has not, been left alone for long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ignore_files, "_SETTLED_NS", -(10**18) if settled else 10**19)
        yield
