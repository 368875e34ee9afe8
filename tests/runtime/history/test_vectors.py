"""Every vector file passes, and the script that runs them says so and can say otherwise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.history.vectors import AREAS, differences

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "tests" / "data" / "vectors").glob("*.json"))
VECTORS = [vector for path in FILES for vector in json.loads(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['area']}-{vector['name']}")
def test_vector(vector):
    assert differences(vector) == []


def test_every_area_has_vectors():
    assert {vector["area"] for vector in VECTORS} == set(AREAS)


def check(*paths):
    command = [sys.executable, str(ROOT / "scripts" / "check_vectors"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_script_counts_and_names_failures(tmp_path):
    wrong = {**VECTORS[0], "name": "made_wrong", "expect": {"rows": "never"}}
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps([wrong, VECTORS[0]]), encoding="utf-8")
    done = check(path)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines[0].startswith(f"{wrong['area']} made_wrong:")
    assert lines[-1] == "1 passed, 1 failed"


def test_the_script_passes_all_files():
    done = check(*FILES)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{len(VECTORS)} passed, 0 failed")
