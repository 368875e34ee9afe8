"""Answers that hold for good: kept, found again, forgotten, and what a damaged file does."""

import json
import os

from runtime.permission.remembered_answers import Remembered, all_answers, forget
from runtime.permission.rules import Rule

NPM, GIT = Rule("run_command", "npm test*"), Rule("run_command", "git push*")


def test_kept_for_one_project_and_found_by_another_process(tmp_path):
    kept, project = tmp_path / "kept", tmp_path / "a"
    mine, other = Remembered(kept, project), Remembered(kept, project)
    assert mine.rules("allow") == other.rules("allow") == ()
    mine.add("allow", [NPM])
    other.add("deny", [GIT])
    for one in (mine, other, Remembered(kept, project)):
        assert (one.rules("allow"), one.rules("deny")) == ((NPM,), (GIT,))
    assert Remembered(kept, tmp_path / "b").rules("allow") == ()


def test_a_link_to_the_project_is_the_project(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    Remembered(tmp_path / "kept", tmp_path / "link").add("allow", [NPM])
    assert Remembered(tmp_path / "kept", tmp_path / "a").rules("allow") == (NPM,)


def test_small_files_that_nobody_else_reads(tmp_path):
    remembered = Remembered(tmp_path / "kept", tmp_path)
    remembered.add("allow", [NPM, GIT])
    remembered.add("allow", [NPM])
    files = [answer.file for answer in all_answers(tmp_path / "kept")]
    assert len(files) == 2
    assert {os.stat(file).st_mode & 0o777 for file in files} == {0o600}
    assert os.stat(files[0].parent).st_mode & 0o777 == 0o700
    assert {path.suffix for path in files[0].parent.iterdir()} == {".json"}


def test_forgotten(tmp_path):
    remembered = Remembered(tmp_path / "kept", tmp_path)
    remembered.add("allow", [NPM, GIT])
    (first, _) = all_answers(tmp_path / "kept")
    assert (str(first.rule), first.project) == ("run_command:git push*", str(tmp_path))
    assert [forget(first), forget(first)] == [True, False]
    os.utime(first.file.parent, ns=(1, 1))
    assert remembered.rules("allow") == (NPM,)


def test_what_cannot_be_read_allows_nothing(tmp_path, caplog):
    remembered = Remembered(tmp_path / "kept", tmp_path)
    remembered.add("allow", [NPM])
    folder = all_answers(tmp_path / "kept")[0].file.parent
    good = {"project": str(tmp_path), "effect": "allow", "rule": "run_command:ls"}
    bad = [
        "", "[]", "{", json.dumps({**good, "rule": "run_command:sudo*"}), json.dumps({**good, "rule": 3}),
        json.dumps({**good, "effect": "perhaps"}), json.dumps({"rule": "x"}), "[" * 100_000,
        json.dumps({**good, "project": "/elsewhere"}), json.dumps({**good, "rule": "*"}),
    ]  # fmt: skip
    for number, text in enumerate(bad):
        (folder / f"{number}.json").write_text(text)
    (folder / "x.json").write_bytes(b"\xff")
    (folder / "dir.json").mkdir()
    assert Remembered(tmp_path / "kept", tmp_path).rules("allow") == (NPM,)
    assert "left aside" in caplog.text
