"""The real model for the tests that want it, fetched once for all runs by the product's own command."""

import fcntl
import importlib.util
from pathlib import Path

import platformdirs
import pytest

from acp_server.assembly.extras import pull
from runtime.providers.local.model_files import DEFAULT_MODEL, KNOWN
from runtime.values.errors import WholeturnError


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The model's file, in a cache folder that stays. Skips where the library or the network is missing."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    folder = platformdirs.user_cache_path("wholeturn-tests") / "models"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return pull(KNOWN[DEFAULT_MODEL], folder)
        except WholeturnError as error:
            pytest.skip(error.message)
