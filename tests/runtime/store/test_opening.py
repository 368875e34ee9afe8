"""From a setting to a store: names, paths, defaults, and what a start must not import."""

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.store.common import faults
from runtime.store.memory import MemoryStore
from runtime.store.opening import default_store_path, open_store
from runtime.values.errors import ConfigError
from tests.runtime.store.helpers import ROOT, record


def ignore(_message: str) -> None:
    """Nobody listens."""


def test_memory_is_a_name_and_not_a_path():
    assert isinstance(open_store("memory", on_trouble=ignore), MemoryStore)


@pytest.mark.parametrize("url", ["mysql://u:geheim@host/db", "sqlite:///x.db", "http://x"])
def test_another_address_is_refused_with_what_can_be_set(url):
    with pytest.raises(ConfigError, match="path of a file") as caught:
        open_store(url, on_trouble=ignore)
    assert "geheim" not in str(caught.value)


async def test_a_path_may_begin_at_home_or_be_relative(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for target, made in (("~/a/s.db", "a/s.db"), ("b/s.db", "b/s.db"), (Path("c/x?y#z.db"), "c/x?y#z.db")):
        store = open_store(target, on_trouble=ignore)
        await store.create_session(record())
        assert await store.session("s1") is not None
        await store.aclose()
        assert (tmp_path / made).exists()


async def test_without_a_target_the_default_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("WHOLETURN_DATA_DIR", str(tmp_path / "data"))
    store = open_store(None, on_trouble=ignore)
    await store.create_session(record())
    await store.aclose()
    assert (tmp_path / "data" / "sessions.db").exists()


@pytest.mark.parametrize("folder", ["", None])
def test_the_default_lies_in_the_user_s_data_folder(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if folder is None:
        monkeypatch.delenv("WHOLETURN_DATA_DIR", raising=False)
    else:
        monkeypatch.setenv("WHOLETURN_DATA_DIR", folder)
    path = default_store_path()
    assert path.is_absolute()
    assert path.is_relative_to(tmp_path)
    assert path.parts[-2:] == ("wholeturn", "sessions.db")


def test_a_named_folder_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHOLETURN_DATA_DIR", "here")
    assert default_store_path() == tmp_path / "here" / "sessions.db"


def test_the_memory_store_needs_no_database_and_no_store_needs_more_than_it_uses():
    code = (
        "import sys; from runtime.store.opening import open_store; open_store('memory', on_trouble=print);"
        "assert 'sqlite3' not in sys.modules;"
        "open_store('/nowhere/s.db', on_trouble=print); assert 'sqlite3' in sys.modules;"
        "assert not {'platformdirs', 'pydantic', 'shutil', 'base64', 'asyncio'} & set(sys.modules) - before"
    )
    code = "import sys, trio; before = set(sys.modules);" + code
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_trouble_has_a_sentence():
    for kind in faults.TroubleKind:
        trouble = faults.StoreTrouble(kind, Path("/data/s.db"), "detail")
        assert "/data/s.db" in str(trouble)
        assert str(trouble).endswith("(detail)")
        assert trouble.data == {"kind": kind.value}
