"""Every case of the kinds that a whole process is needed for has a test that carries its number."""

import re
from pathlib import Path

from tests.runtime.history.case_data import cases

KINDS = {"wire", "turn-control", "interrupted-turn", "load-and-replay", "provider-fault", "storage"}
LATER: dict[str, str] = {}
"""What waits for which part of the product."""


def covered() -> set[str]:
    """The numbers in the names of the tests of cases."""
    files = Path(__file__).parents[1].rglob("test_c*.py")
    names = re.findall(r"def test(?:_b\d{3})+", "\n".join(path.read_text(encoding="utf-8") for path in files))
    return {f"B{number}" for name in names for number in re.findall(r"_b(\d{3})", name)}


def test_every_case_is_tested_or_waits() -> None:
    wanted = {case_id for case_id, case in cases().items() if case["kind"] in KINDS}
    assert wanted - covered() - set(LATER) == set()
    assert covered() | set(LATER) <= set(cases())
    assert covered().isdisjoint(LATER)
