"""Trust is of one folder and one content: it ends when either is another."""

import os
import stat

import pytest

from acp_server.config import project_trust
from acp_server.config.load import project_layer
from runtime.values.errors import ConfigError

TEXT = 'store = "theirs.db"\n[providers.p]\nkind = "openai"\n'


@pytest.fixture
def trusting(place):
    place.project_file(TEXT)
    layer = project_layer(place.project)
    assert layer is not None
    project_trust.trust(place.env, place.project, layer.digest)
    return place


def test_trusted_file_sets_everything(trusting):
    config = trusting.session()
    assert config.agent.provider.name == "p"
    assert config.store == f"{trusting.project}/theirs.db"
    assert config.warnings == ()


def test_changed_file_is_untrusted_again(trusting):
    trusting.project_file(TEXT + "# more\n")
    config = trusting.session()
    assert config.agent.provider is None
    assert [warning.split(" is left out")[0].split(": ")[1] for warning in config.warnings] == [
        "store",
        "providers.p",
    ]
    trusting.project_file(TEXT)
    assert trusting.session().agent.provider is not None


def test_same_file_elsewhere_is_not_trusted(trusting, tmp_path):
    trusting.project = tmp_path / "copy"
    trusting.project.mkdir()
    trusting.project_file(TEXT)
    assert trusting.session().agent.provider is None


def test_folder_behind_a_link_is_the_folder(trusting, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(trusting.project)
    real, trusting.project = trusting.project, link
    assert trusting.session().agent.provider is not None
    assert project_trust.revoke(trusting.env, link)
    trusting.project = real
    assert trusting.session().agent.provider is None


def test_link_that_points_elsewhere_now_is_not_trusted(place, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    link = tmp_path / "link"
    link.symlink_to(place.project)
    digest = "0" * 64
    project_trust.trust(place.env, link, digest)
    assert project_trust.is_trusted(place.env, link, digest)
    link.unlink()
    link.symlink_to(other)
    assert not project_trust.is_trusted(place.env, link, digest)


def test_revoke_of_a_folder_that_is_gone(trusting):
    (trusting.project / ".wholeturn.toml").unlink()
    trusting.project.rmdir()
    assert project_trust.revoke(trusting.env, trusting.project)
    assert not project_trust.revoke(trusting.env, trusting.project)


def test_folders_are_listed_by_name(place, tmp_path):
    for name in ("b", "a"):
        project_trust.trust(place.env, tmp_path / name, name * 64)
    project_trust.trust(place.env, tmp_path / "b", "c" * 64)
    assert project_trust.trusted_folders(place.env) == [
        project_trust.Trusted(str(tmp_path / "a"), "a" * 64),
        project_trust.Trusted(str(tmp_path / "b"), "c" * 64),
    ]


def test_records_are_the_users_alone(trusting):
    folder = trusting.home / "trusted"
    (record,) = folder.iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"folder": 1}', "[" * 5000])
def test_broken_record_is_no_trust(trusting, content):
    (record,) = (trusting.home / "trusted").iterdir()
    record.write_text(content)
    assert trusting.session().agent.provider is None


def test_record_of_another_folder_is_no_trust(trusting, tmp_path):
    project_trust.trust(trusting.env, tmp_path, "0" * 64)
    records = {path: path.read_text() for path in (trusting.home / "trusted").iterdir()}
    for path, text in zip(records, reversed(records.values()), strict=True):
        path.write_text(text)
    assert trusting.session().agent.provider is None


def test_trust_that_cannot_be_recorded(place):
    (place.home / "trusted").write_text("in the way")
    with pytest.raises(ConfigError, match="trust cannot be recorded"):
        project_trust.trust(place.env, place.project, "0" * 64)


@pytest.mark.skipif(not hasattr(os, "fsencode") or os.name == "nt", reason="needs byte paths")
def test_folder_whose_name_is_no_text(place):
    odd = place.project / os.fsdecode(b"caf\xe9")
    try:
        odd.mkdir()
    except OSError:
        pytest.skip("this file system takes text only")
    project_trust.trust(place.env, odd, "0" * 64)
    assert project_trust.is_trusted(place.env, odd, "0" * 64)
