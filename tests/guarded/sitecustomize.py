"""Watches every Python process that a test starts, as `conftest` watches its own: on their PYTHONPATH."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location


def _watch(log: str) -> None:
    path = os.path.join(os.path.dirname(__file__), os.pardir, "hand_opened.py")
    spec = spec_from_file_location("hand_opened", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)

    def tell(text: str) -> None:
        with open(log, "a") as file:
            file.write(f"{' '.join(sys.argv)}: {text}\n")

    module.Watch(tell).install()


if log := os.environ.get("HAND_OPENED_LOG"):
    _watch(log)
