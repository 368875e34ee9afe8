"""Folders by platform: the short way for Linux answers as the library does."""

import sys

import platformdirs
import pytest

from acp_server.config.paths import absolute, config_dir, data_dir, default_store, short, user_file


@pytest.mark.parametrize("value", [None, "", "/x/y", "relative/z", "~/q"])
def test_folders_are_the_librarys(monkeypatch, value):
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    env = {} if value is None else {"XDG_CONFIG_HOME": value, "XDG_DATA_HOME": value}
    assert config_dir(env) == platformdirs.user_config_path("wholeturn")
    assert data_dir(env) == platformdirs.user_data_path("wholeturn")


def test_other_platforms_ask_the_library(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert config_dir({}) == platformdirs.user_config_path("wholeturn")
    assert data_dir({}) == platformdirs.user_data_path("wholeturn")


def test_named_folders(tmp_path):
    env = {"WHOLETURN_CONFIG_DIR": str(tmp_path / "c"), "WHOLETURN_DATA_DIR": str(tmp_path / "d")}
    assert user_file(env) == tmp_path / "c" / "config.toml"
    assert default_store(env) == str(tmp_path / "d" / "sessions.db")


def test_absolute_and_short(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert absolute("a/../b", "/f") == "/f/b"
    assert absolute("~/b", "/f") == "/home/me/b"
    assert absolute("/b", "/f") == "/b"
    assert short("/home/me/x") == "~/x"
    assert short("/home/merlin/x") == "/home/merlin/x"
