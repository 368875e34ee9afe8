"""Keys set in a settings file: the rest stays, the result reads as it should, or nothing is done."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_server.config.layers import put
from acp_server.config.writing import Wanted, lines_of, with_keys, write_user_file
from runtime.values.errors import ConfigError

WANTED: Wanted = {
    ("agents", "default", "provider"): "p",
    ("providers", "p", "kind"): "openai",
    ("providers", "p", "model"): 'a "b"',
    ("providers", "p", "context_window"): 1000,
}
FRESH = """\
[agents.default]
provider = "p"

[providers.p]
kind = "openai"
model = "a \\"b\\""
context_window = 1000
"""


def test_a_file_that_is_not_there_yet():
    assert lines_of(WANTED) == FRESH


def test_what_is_there_stays_with_its_comments():
    text = '# mine\n[providers.p] # cloud\nmodel = "old"\nkind = "openai"  # chat\n\n[acp]\nx = 1\n'
    assert with_keys(text, WANTED) == (
        '# mine\n[providers.p] # cloud\ncontext_window = 1000\nmodel = "a \\"b\\""\nkind = "openai"\n\n'
        '[acp]\nx = 1\n\n[agents.default]\nprovider = "p"\n'
    )


def test_a_table_that_only_has_tables_inside_gets_a_header():
    made = with_keys("[providers.p.models.m]\nimages = true\n", WANTED)
    assert made is not None
    assert made.count("[providers.p]") == 1


HARD = [
    'providers.p = { kind = "openai", model = "x" }\n',
    '[providers.p]\nmodel = """\nlong\n"""\n',
    "providers = 1\n",
    "[[agents]]\n",
]


@pytest.mark.parametrize("text", HARD)
def test_what_is_written_too_freely_is_left_alone(text):
    assert with_keys(text, WANTED) is None


names = st.sampled_from(["a", "b", "a b", "ü"])
values = st.one_of(st.text(max_size=8), st.integers(0, 9), st.booleans())
tables = st.dictionaries(st.tuples(names, names, names), values, max_size=6)


@given(tables, tables)
def test_the_result_reads_as_it_should(before, wanted):
    text = lines_of(before)
    made = with_keys(text, wanted)
    assert made is not None
    tree = tomllib.loads(text)
    for key, value in wanted.items():
        put(tree, key, value)
    assert tomllib.loads(made) == tree


def test_the_former_file_is_kept_and_a_link_stays_one(tmp_path):
    real, link = tmp_path / "dotfiles.toml", tmp_path / "config" / "config.toml"
    real.write_text("old = 1\n")
    real.chmod(0o640)
    link.parent.mkdir()
    link.symlink_to(real)
    kept = write_user_file(link, "new = 1\n")
    assert link.is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("new = 1\n", 0o640)
    assert kept is not None
    assert kept.read_text() == "old = 1\n"


def test_a_new_file_is_its_owners_alone(tmp_path):
    path = tmp_path / "a" / "config.toml"
    assert write_user_file(path, "x = 1\n") is None
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_user_file(tmp_path / "file" / "config.toml", "x = 1\n")
