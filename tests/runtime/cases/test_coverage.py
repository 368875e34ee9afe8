"""Every case of the kinds that are about histories and requests has a test that carries its id."""

import re
from pathlib import Path

from tests.runtime.history.case_data import cases

KINDS = {
    *("pair-integrity", "overflow-recovery", "disclosure", "row-shape", "token-count"),
    "goal-and-summary",
}
LATER: dict[str, str] = {}
"""What waits for which part of the product."""
HERE = Path(__file__).parent


def covered() -> set[str]:
    """The ids in the names of the tests of cases."""
    files = (*HERE.glob("test_*.py"), HERE.parent / "history" / "test_cases.py")
    names = re.findall(r"def test_b(\d{3})", "\n".join(path.read_text(encoding="utf-8") for path in files))
    return {f"B{number}" for number in names}


def test_every_case_is_tested_or_waits():
    wanted = {case_id for case_id, case in cases().items() if case["kind"] in KINDS}
    assert len(wanted) == 44
    assert covered() | set(LATER) == wanted
    assert covered().isdisjoint(LATER)
