"""A whole job under real clients: find the failing tests, edit two files, run, fail, mend, run, finish."""

import json
import sys
from pathlib import Path

import pytest
import trio

from runtime.store.sqlite.store import SqliteStore
from schemas.transcript import ANY_STEP, ToolStep
from tests.clients.rigs import Conversation, converse

RUN = f"{sys.executable} -m unittest -q"
FILES = {
    "shop/__init__.py": "",
    "shop/price.py": "def total(prices, discount=0):\n    return sum(prices) + discount\n",
    "shop/label.py": 'def label(name, price):\n    return name + ": " + price\n',
    "test_shop.py": """\
import unittest

from shop.label import label
from shop.price import total


class Shop(unittest.TestCase):
    def test_discount(self):
        self.assertEqual(total([3, 4], 2), 5)

    def test_never_below_nothing(self):
        self.assertEqual(total([1], 2), 0)

    def test_label(self):
        self.assertEqual(label("tea", 3), "tea: 3")
""",
    "AGENTS.md": "Run `python -m unittest` after each change.\n",
}
MENDED = {
    "shop/price.py": "def total(prices, discount=0):\n    return max(sum(prices) - discount, 0)\n",
    "shop/label.py": 'def label(name, price):\n    return f"{name}: {price}"\n',
}
SETTINGS = """\
[agents.default]
provider = "model"
[providers.model]
kind = "scripted"
script = {script}
"""
EVERYTHING = ("read", "write", "terminal")


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def edit(path: str, old: str, new: str) -> dict[str, object]:
    return call("edit_file", path=path, edits=[{"old": old, "new": new}])


def plan(*statuses: str) -> dict[str, object]:
    steps = ("find the failure", "mend it", "prove it")
    return call(
        "update_plan",
        entries=[{"content": step, "status": status} for step, status in zip(steps, statuses, strict=True)],
    )


JOB = [
    {
        "text": "I look first.",
        "calls": [plan("in_progress", "pending", "pending"), call("run_command", command=RUN)],
    },
    {
        "calls": [
            call("search_text", pattern="def (total|label)"),
            call("read_file", path="shop/price.py"),
            call("read_file", path="shop/label.py"),
        ]
    },
    {
        "calls": [
            edit("shop/price.py", "+ discount", "- discount"),
            edit("shop/label.py", 'name + ": " + price', 'f"{name}: {price}"'),
        ]
    },
    {"calls": [call("run_command", command=RUN)]},
    {"calls": [edit("shop/price.py", "sum(prices) - discount", "max(sum(prices) - discount, 0)")]},
    {"calls": [call("run_command", command=RUN)]},
    {"calls": [plan("completed", "completed", "completed")]},
    {"text": "Both are mended and the tests pass."},
]


def do_the_job(client: str, folder: Path, offers: tuple[str, ...]) -> Conversation:
    for name, text in FILES.items():
        path = folder / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    settings, script = folder / "settings", folder / "script.json"
    settings.mkdir()
    script.write_text(json.dumps({"replies": JOB}))
    (settings / "config.toml").write_text(SETTINGS.format(script=json.dumps(str(script))))
    return converse(
        client,
        [str(Path(sys.executable).with_name("wholeturn"))],
        folder,
        ["Make the tests pass."],
        {"WHOLETURN_CONFIG_DIR": str(settings), "WHOLETURN_DATA_DIR": str(folder / "data")},
        offers,
    )


async def results_of(path: Path, tool: str) -> list[ToolStep]:
    """The results of the calls whose title begins so, in order, out of the store."""
    store = SqliteStore(path)
    try:
        (record,) = (await store.list_sessions(cwd=None, cursor=None, limit=9)).sessions
        entries = await store.entries(record.session_id)
        steps = [ANY_STEP.validate_json(entry.payload) for entry in entries if entry.kind == "tool"]
        return [step for step in steps if isinstance(step, ToolStep) and step.title.startswith(tool)]
    finally:
        await store.aclose()


@pytest.mark.parametrize("offers", [EVERYTHING, ()], ids=["lends", "bare"])
@pytest.mark.parametrize("client", ["python", "acpx"])
def test_a_real_job_ends_with_the_right_files(client: str, offers: tuple[str, ...], tmp_path: Path) -> None:
    talk = do_the_job(client, tmp_path, offers)
    work = tmp_path / "work"
    assert {name: (work / name).read_text() for name in FILES} == FILES | MENDED
    (turn,) = talk.summary["turns"]
    assert (turn["stop"], turn["text"]) == ("end_turn", "I look first.Both are mended and the tests pass.")
    runs = trio.run(results_of, tmp_path / "data" / "sessions.db", RUN[:20])
    assert [step.status for step in runs] == ["failed", "failed", "completed"]
    assert ["FAILED (" in step.text for step in runs] == [True, True, False]
    assert "test_label" in runs[0].text
    assert "test_label" not in runs[1].text
    assert "OK" in runs[2].text
    asked = [frame["method"] for frame in talk.frames() if "id" in frame and "method" in frame]
    assert asked.count("session/request_permission") == 6
    lent = {"fs/read_text_file", "fs/write_text_file", "terminal/create"}
    assert lent & set(asked) == (lent if offers else set())


@pytest.mark.parametrize("offers", [EVERYTHING, ()], ids=["lends", "bare"])
def test_the_wire_tells_each_call_to_its_end_with_diffs_and_the_plan(
    offers: tuple[str, ...], tmp_path: Path
) -> None:
    updates = do_the_job("python", tmp_path, offers).updates()
    begun = [update for update in updates if update["sessionUpdate"] == "tool_call"]
    ends = {
        update["toolCallId"]: update["status"]
        for update in updates
        if update["sessionUpdate"] == "tool_call_update"
    }
    assert set(ends) == {update["toolCallId"] for update in begun}
    assert list(ends.values()).count("failed") == 2
    assert set(ends.values()) == {"completed", "failed"}
    shown = [
        part["path"]
        for update in updates
        for part in update.get("content", ())
        if isinstance(part, dict) and part["type"] == "diff" and update.get("status") == "completed"
    ]
    assert [Path(path).name for path in shown] == ["price.py", "label.py", "price.py"]
    plans = [update["entries"] for update in updates if update["sessionUpdate"] == "plan"]
    assert [entry["status"] for entry in plans[-1]] == ["completed"] * 3
