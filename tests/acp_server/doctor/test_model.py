"""The model: that there is one, its key, and whether it answers."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_server.config.secrets import store_key
from acp_server.doctor import model as checks
from tests.acp_server.doctor.rigs import Machine, only, rows

KEYED = 'api_key_env = "MY_KEY"\n'
SECRET = "sk-not-to-be-shown-0123456789"


def test_no_model(machine: Machine):
    found = only(checks.check_model(machine.read()), "model")
    assert (found.status, found.mend) == ("bad", checks.SETUP)
    assert list(checks.check_answer(machine.read(), 5.0)) == []


def test_a_model_without_a_key(machine: Machine):
    machine.model_at("http://u:p@127.0.0.1:1/v1")
    assert rows(checks.check_model(machine.read())) == [("model", "ok"), ("key", "ok")]
    shown = only(checks.check_model(machine.read()), "model").text
    assert "127.0.0.1:1" in shown
    assert "u:p" not in shown


def test_a_key_that_is_not_there(machine: Machine):
    machine.model_at("http://127.0.0.1:1/v1", KEYED)
    found = only(checks.check_model(machine.read()), "key")
    assert found.status == "bad"
    assert "MY_KEY" in found.text
    assert "wholeturn setup" in found.mend


@pytest.mark.parametrize("stored", [True, False])
def test_a_key_that_is_there_is_not_shown(machine: Machine, stored: bool, monkeypatch: pytest.MonkeyPatch):
    machine.model_at("http://127.0.0.1:1/v1", KEYED)
    if stored:
        monkeypatch.setattr("acp_server.config.secrets._keyring", lambda: None)
        store_key(machine.place.env, "MY_KEY", SECRET)
    else:
        machine.env["MY_KEY"] = SECRET
    found = list(checks.check_model(machine.read()))
    assert rows(found) == [("model", "ok"), ("key", "ok")]
    assert SECRET not in str(found)


def test_a_file_of_keys_that_others_may_read(machine: Machine):
    machine.model_at("http://127.0.0.1:1/v1", KEYED)
    keys = machine.root / "config" / "keys.json"
    keys.write_text(json.dumps({"version": 1, "keys": {"MY_KEY": {"in": "file", "key": SECRET}}}))
    keys.chmod(0o644)
    found = only(checks.check_model(machine.read()), "key")
    assert found.status == "bad"
    assert "chmod 600" in found.text
    assert SECRET not in str(found)


def test_a_local_model_that_was_not_fetched(machine: Machine):
    machine.settings('[providers.l]\nkind = "local"\nmodel = "smollm2"\n')
    (bad,) = [finding for finding in checks.check_model(machine.read()) if finding.status == "bad"]
    assert "models pull" in bad.mend
    # Loading it would take long; nothing is asked.
    assert list(checks.check_answer(machine.read(), 5.0)) == []


def test_without_its_key_it_is_not_asked(machine: Machine):
    # It has been told already, and no key was refused.
    machine.model_at("http://127.0.0.1:1/v1", KEYED)
    assert list(checks.check_answer(machine.read(), 5.0)) == []


def test_a_model_that_answers(machine: Machine, mock_model: Callable[..., str]):
    machine.model_at(f"{mock_model()}/v1")
    assert rows(checks.check_answer(machine.read(), 30.0)) == [("answer", "ok")]


def test_a_server_that_refuses_the_key(machine: Machine, mock_model: Callable[..., str]):
    machine.model_at(f"{mock_model(faults=['401'] * 9)}/v1", KEYED)
    machine.env["MY_KEY"] = SECRET
    found = only(checks.check_answer(machine.read(), 30.0), "answer")
    assert found.status == "bad"
    assert found.mend.startswith("The key was refused")
    assert SECRET not in str(found)


def test_nobody_at_the_address(machine: Machine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    machine.model_at(f"http://127.0.0.1:{port}/v1")
    found = only(checks.check_answer(machine.read(), 30.0), "answer")
    assert (found.status, found.mend) == ("bad", checks.UNREACHABLE)


def test_a_server_that_says_nothing_is_given_up(machine: Machine):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        machine.model_at(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        found = only(checks.check_answer(machine.read(), 0.5), "answer")
    assert found.status == "bad"
    assert "0.5 s" in found.text


def test_a_setting_of_the_provider_that_cannot_be_used(machine: Machine, tmp_path: Path):
    machine.settings(f'[providers.s]\nkind = "scripted"\nmodel = "s"\nscript = "{tmp_path / "none.json"}"\n')
    found = only(checks.check_answer(machine.read(), 5.0), "answer")
    assert found.status == "bad"
