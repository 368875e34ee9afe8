"""Plugins of pydantic that are installed beside the agent: nobody asked for them, and to look costs time."""

import sys
from pathlib import Path

import trio

from tests.process.homes import Home, says

PLUGIN = "from pathlib import Path\nPath({seen!r}).touch()\nplugin = None\n"


def install(folder: Path, seen: Path) -> None:
    """A distribution with a plugin that leaves a trace when it is loaded."""
    made = folder / "nosy-1.0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: nosy\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text("[pydantic]\nnosy = nosy:plugin\n")
    (folder / "nosy.py").write_text(PLUGIN.format(seen=str(seen)))


async def test_none_is_loaded(home: Home) -> None:
    folder, seen = home.root / "installed", home.root / "seen"
    install(folder, seen)
    home.extra_env["PYTHONPATH"] = str(folder)
    model = "from pydantic import BaseModel\nclass Model(BaseModel):\n    number: int\n"
    await trio.run_process([sys.executable, "-c", model], env=home.env, check=False, capture_stderr=True)
    assert seen.exists(), "pydantic itself does load it"
    seen.unlink()
    home.script(says("hello"))
    async with home.talk() as talk:
        assert (await talk.turn("hi")).stop == "end_turn"
    assert not seen.exists()
