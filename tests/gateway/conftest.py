"""What the tests of the gateway may ask for."""

from pathlib import Path

import pytest

from tests.process.homes import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A machine of its own, with a model that repeats what it is told."""
    made = Home(tmp_path)
    made.script(echo="{turn}: you said {last}")
    return made
