"""What the doctor's tests may ask for."""

from pathlib import Path

import pytest

from tests.acp_server.doctor.rigs import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine of its own, without settings."""
    return Machine(tmp_path)
