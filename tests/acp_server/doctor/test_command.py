"""The command: what it prints, its exit status, and that it changes nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from acp_server.cli.doctor import lines_of
from acp_server.doctor.finding import Finding
from tests.acp_server.doctor.rigs import Machine

SECRET = "sk-not-to-be-shown-0123456789"


def doctor(machine: Machine, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run it in the machine's folder."""
    return subprocess.run(
        [sys.executable, "-m", "acp_server", "doctor", *arguments],
        cwd=machine.place.folder,
        env={**machine.place.env, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_all_is_well(machine: Machine, mock_model: Callable[..., str]):
    machine.model_at(f"{mock_model()}/v1", 'api_key_env = "MY_KEY"\n')
    machine.env["MY_KEY"] = SECRET
    before = machine.snapshot()
    done = doctor(machine, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], done.stderr) == (0, True, "")
    assert machine.snapshot() == before
    assert SECRET not in done.stdout
    checks = [finding["check"] for finding in found["findings"]]
    assert {"python", "settings", "model", "key", "answer", "store", "disk", "trust", "start"} <= set(checks)
    assert all(set(finding) == {"check", "status", "text", "mend"} for finding in found["findings"])
    assert doctor(machine).returncode == 0


def test_what_is_wrong_has_a_line_that_mends_it(machine: Machine):
    done = doctor(machine, "--offline")
    assert done.returncode == 1
    assert "bad   model     No model is configured." in done.stdout
    assert "-> Run `wholeturn setup`." in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 to mend")


def test_broken_settings_do_not_stop_the_other_checks(machine: Machine):
    machine.settings("[providers")
    done = doctor(machine, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"]) == (1, False)
    assert {"settings", "start", "python"} <= {finding["check"] for finding in found["findings"]}


def test_offline_asks_nobody(machine: Machine):
    machine.model_at("http://127.0.0.1:9/v1")
    done = doctor(machine, "--offline", "--json")
    assert done.returncode == 0
    assert "answer" not in {finding["check"] for finding in json.loads(done.stdout)["findings"]}


def test_flags_change_what_is_looked_at(machine: Machine):
    done = doctor(machine, "--offline", "--json", "--store", "memory")
    texts = [finding["text"] for finding in json.loads(done.stdout)["findings"]]
    assert any("in memory" in text for text in texts)


@pytest.mark.parametrize("length", [10, 400])
def test_a_finding_for_people_fits_the_width(length: int):
    lines = lines_of(Finding("store", "bad", "word " * (length // 5), "mend it"))
    assert all(len(line) <= 100 for line in lines)
    assert lines[0].startswith("bad   store     word")
    assert lines[-1] == " " * 16 + "-> mend it"
