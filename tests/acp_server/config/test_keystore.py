"""Keys that were stored: where they are, who may read them, and that they are found and never shown."""

import json
import sys
from types import SimpleNamespace

import pytest

from acp_server.config.effective import settings_in_force
from acp_server.config.secrets import KeyedEnviron, forget_key, is_stored, keys_file, store_key, stored_key
from runtime.values.errors import ConfigError
from tests.acp_server.config.conftest import USER

KEY = "sk-hunter2"


class Ring:
    """A keyring like the library's; `broken` fails as one that is locked."""

    def __init__(self, priority: float = 5, *, broken: bool = False) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.priority = priority
        self.broken = broken

    def get_keyring(self):
        return SimpleNamespace(priority=self.priority)

    def get_password(self, service, name):
        self._check()
        return self.kept.get((service, name))

    def set_password(self, service, name, key):
        self._check()
        self.kept[service, name] = key

    def delete_password(self, service, name):
        self._check()
        del self.kept[service, name]

    def _check(self):
        if self.broken:
            raise RuntimeError(f"locked, {KEY}")


@pytest.fixture
def env(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    return {"WHOLETURN_CONFIG_DIR": str(tmp_path / "config"), "EMPTY": "", "SET": "from outside"}


@pytest.fixture
def ring(monkeypatch, env):
    made = Ring()
    monkeypatch.setitem(sys.modules, "keyring", made)
    return made


def test_without_a_keyring_a_file_of_the_owners_alone(env):
    assert store_key(env, "A_KEY", KEY) == str(keys_file(env))
    assert keys_file(env).stat().st_mode & 0o777 == 0o600
    assert keys_file(env).parent.stat().st_mode & 0o777 == 0o700
    assert (stored_key(env, "A_KEY"), stored_key(env, "OTHER")) == (KEY, None)
    store_key(env, "OTHER", "x")
    assert stored_key(env, "A_KEY") == KEY
    assert [path.name for path in keys_file(env).parent.iterdir()] == ["keys.json"]


def test_with_a_keyring_the_file_only_says_so(env, ring):
    assert store_key(env, "A_KEY", KEY) == "the system's keyring"
    assert ring.kept == {("wholeturn", "A_KEY"): KEY}
    assert KEY not in keys_file(env).read_text()
    assert stored_key(env, "A_KEY") == KEY
    assert is_stored(env, "A_KEY")
    assert forget_key(env, "A_KEY")
    assert not ring.kept
    assert not forget_key(env, "A_KEY")


@pytest.mark.parametrize("ring_", [Ring(priority=0), Ring(broken=True)])
def test_a_keyring_that_is_none_or_fails_is_passed_over(env, monkeypatch, ring_):
    monkeypatch.setitem(sys.modules, "keyring", ring_)
    assert store_key(env, "A_KEY", KEY) == str(keys_file(env))
    assert stored_key(env, "A_KEY") == KEY


def test_a_keyring_that_does_not_open_is_an_error_without_the_key(env, ring):
    store_key(env, "A_KEY", KEY)
    ring.broken = True
    with pytest.raises(ConfigError) as caught:
        stored_key(env, "A_KEY")
    assert "A_KEY" in str(caught.value)
    assert KEY not in str(caught.value)


class Untouched:
    """A library that nobody may use."""

    def __getattr__(self, name: str) -> object:
        pytest.fail(name)


def test_no_library_is_loaded_for_a_key_that_is_not_in_a_keyring(env, monkeypatch):
    store_key(env, "A_KEY", KEY)
    monkeypatch.setitem(sys.modules, "keyring", Untouched())
    assert stored_key(env, "A_KEY") == KEY
    assert stored_key(env, "B_KEY") is None


def test_a_file_that_others_may_read_is_refused(env):
    store_key(env, "A_KEY", KEY)
    keys_file(env).chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        stored_key(env, "A_KEY")


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"keys": 1}', '{"keys": {"A_KEY": 5}}', '{"keys": {"A_KEY": {"key": 1}}}']
)
def test_a_file_that_is_not_ours_gives_no_key(env, text):
    store_key(env, "A_KEY", KEY)
    keys_file(env).write_text(text)
    assert found_key(env) in (None, "told")


def found_key(env):
    """The key; `told` when the file was refused by its name."""
    try:
        return stored_key(env, "A_KEY")
    except ConfigError as error:
        return "told" if "keys.json" in str(error) else str(error)


def test_what_is_set_stands_above_what_is_stored(env):
    store_key(env, "SET", KEY)
    store_key(env, "EMPTY", KEY)
    keyed = KeyedEnviron(env)
    assert (keyed["SET"], keyed["EMPTY"], keyed.get("NONE")) == ("from outside", KEY, None)
    assert dict(keyed)["WHOLETURN_CONFIG_DIR"] == env["WHOLETURN_CONFIG_DIR"]
    assert len(keyed) == len(env)


def test_a_key_that_is_stored_later_is_found(env):
    keyed = KeyedEnviron(env)
    assert keyed.get("A_KEY") is None
    store_key(env, "A_KEY", KEY)
    assert keyed.get("A_KEY") == KEY


def test_the_listing_of_settings_says_that_a_key_is_stored(place, env):
    place.user(USER)
    store_key(place.env, "LOCAL_KEY", KEY)
    notes = {setting.key: setting.note for setting in settings_in_force(place.view(), place.env)}
    assert notes[("providers", "local", "api_key_env")] == "stored"
    assert notes[("providers", "cloud", "api_key_env")] == "not set"


def test_the_file_is_plain_json(env):
    store_key(env, "A_KEY", KEY)
    assert json.loads(keys_file(env).read_text())["keys"] == {"A_KEY": {"in": "file", "key": KEY}}
