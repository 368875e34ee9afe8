"""Nothing outside the session's folders is read or written: hostile paths, hostile links, links that move."""

import os
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from runtime.ports import Tool, ToolContext, ToolOutcome
from runtime.tools.files.edit_file import EditFile
from runtime.tools.files.list_dir import ListDir
from runtime.tools.files.read_file import ReadFile
from runtime.tools.files.write_file import WriteFile
from runtime.tools.search.find_files import FindFiles
from runtime.values.errors import ToolError
from tests.runtime.tools.support import context, write

SENTINEL = "OUTSIDE-SENTINEL"
LAYOUTS = 35
PATHS = 60
INSIDE = {"a.txt": "a\n", "sub/b.txt": "b\n", "sub/deep/c.txt": "c\n", "outside": "only a name\n"}
NAMES = ["..", ".", "", "sub", "deep", "a.txt", "b.txt", "new.txt", "outside", "secret.txt", "folder"]
ODD = ["．．", "..\u200b", "\u202e..", "%2e%2e", "..%2f", "..\\", "...", "OUTSIDE", "Secret.TXT", "~", "a\0b"]
ELSEWHERE = ["FILE:///", "/proc/self/root", "/proc/self/environ", "\\\\?\\"]
OUTSIDE = {
    "secret.txt": f"{SENTINEL}\n",
    "folder/more.txt": f"{SENTINEL}\n",
    "inside-not/x.txt": f"{SENTINEL}\n",
}


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Thousands of files need not survive a power failure."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that a change outside would change."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = (
            path.read_bytes() if path.is_file() and not path.is_symlink() else os.fsencode(path.resolve())
        )
        found[str(path)] = (status.st_ino, status.st_mode, status.st_mtime_ns, content)
    return found


def make_links(inside: Path, outside: Path, chance: random.Random) -> list[str]:
    """Links in the folder: to the outside, up, to each other, in circles, and through the system's own."""
    targets = [
        str(outside),
        str(outside / "secret.txt"),
        str(outside / "folder"),
        str(outside / "new.txt"),
        "../outside",
        "../outside/secret.txt",
        "..",
        "../..",
        ".",
        "sub",
        "sub/../../outside",
        "/",
        "/proc/self/root",
        "/proc/self/cwd",
        "/dev/fd",
        "/dev/null",
        "missing",
        "l0",
        "l1",
        "l2/..",
        "l3/secret.txt",
    ]
    names = [f"l{number}" for number in range(6)]
    for name in names:
        (inside / name).symlink_to(chance.choice(targets))
    (inside / "sub" / "up").symlink_to(chance.choice(["../..", "..", str(outside), "../l0"]))
    os.mkfifo(inside / "fifo")
    return [*names, "sub/up", "fifo"]


def hostile_paths(inside: Path, outside: Path, links: list[str], chance: random.Random) -> Iterator[str]:
    """Paths that a model may be talked into."""
    names = [*NAMES, *links] * 4 + ODD
    starts = ["", "./", "/", str(inside), f"{inside}/", str(outside), f"{inside}/../outside", f"//{outside}"]
    starts += [f"file://{inside}/", f"file://{outside}/", *ELSEWHERE]
    for _ in range(PATHS):
        parts = chance.choices(names, k=chance.randint(1, 4))
        path = chance.choice(["/", "/", "//", "/./"]).join(parts)
        path = f"{chance.choice(starts)}/{path}" if chance.random() < 0.4 else path
        if chance.random() < 0.1:
            path = path.replace("..", "%2e%2e")
        yield path if chance.random() < 0.9 else f"{path}/"


def calls_on(path: str) -> list[tuple[Tool, dict[str, object]]]:
    """Every tool that takes a path."""
    return [
        (ReadFile(), {"path": path}),
        (WriteFile(), {"path": path, "content": "written\n"}),
        (EditFile(), {"path": path, "edits": [{"old": SENTINEL, "new": "edited"}]}),
        (ListDir(), {"path": path, "depth": 2}),
        (FindFiles(), {"pattern": "*", "path": path}),
    ]


async def said_by(tool: Tool, arguments: dict[str, object], where: ToolContext) -> ToolOutcome:
    """What the model is told, be it an error."""
    try:
        return await tool.run(arguments, where)
    except ToolError as error:
        return ToolOutcome(error.message, failed=True)


async def test_thousands_of_hostile_paths_over_hostile_links(tmp_path):
    chance = random.Random(20)
    tried = 0
    counts = {False: 0, True: 0}
    for number in range(LAYOUTS):
        home = tmp_path / str(number)
        inside, outside = home / "inside", home / "outside"
        write(inside, INSIDE)
        write(outside, OUTSIDE)
        links = make_links(inside, outside, chance)
        before = snapshot(outside)
        above = {path.name for path in home.iterdir()}
        where = context(inside)
        for path in hostile_paths(inside, outside, links, chance):
            tried += 1
            reading, writing, *others = calls_on(path)
            for tool, arguments in (reading, writing, chance.choice(others)):
                outcome = await said_by(tool, arguments, where)
                assert SENTINEL not in outcome.text, (tool.spec.name, path)
                counts[outcome.failed] += 1
        assert snapshot(outside) == before
        assert {path.name for path in home.iterdir()} == above
    assert tried >= 2_000
    # Both happen often, or nothing was tested.
    assert min(counts.values()) > 500


@pytest.mark.parametrize(
    "path", ["/proc/self/environ", "/proc/self/cmdline", "/sys/kernel/version", "/dev/zero"]
)
async def test_the_kernels_own_files_are_nobodys_although_the_root_is_everything(path):
    with pytest.raises(ToolError, match=r"kernel's own|is a device"):
        await ReadFile().run({"path": path}, context(Path("/")))


@pytest.mark.parametrize("kind", ["fifo", "device"])
async def test_special_files_are_not_written(tmp_path, kind):
    if kind == "fifo":
        os.mkfifo(tmp_path / "special")
        where, path = context(tmp_path), "special"
    else:
        where, path = context(Path("/dev")), "null"
    with trio.fail_after(5):
        for tool, arguments in calls_on(path)[1:3]:
            with pytest.raises(ToolError, match=r"is a (FIFO|device), not a regular file"):
                await tool.run(arguments, where)


class Swapper:
    """Replaces a folder by a link to the outside and back, as fast as it can, in a thread of its own."""

    def __init__(self, inside: Path, outside: Path) -> None:
        self._real, self._away = inside / "sub", inside / "away"
        self._outside = outside
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._swap)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _swap(self) -> None:
        while not self._over.is_set():
            os.rename(self._real, self._away)
            with suppress(FileExistsError):
                self._real.symlink_to(self._outside)
                self._real.unlink()
            while self._away.exists():
                # While it was away, a tool may have made the folder that it missed.
                shutil.rmtree(self._real, ignore_errors=True)
                with suppress(OSError):
                    os.rename(self._away, self._real)


async def test_a_folder_that_is_swapped_for_a_link_all_the_time(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    write(inside, {"sub/secret.txt": "harmless\n"})
    write(outside, OUTSIDE)
    before = snapshot(outside)
    where = context(inside)
    seen = set()
    with Swapper(inside, outside):
        for number in range(200):
            for tool, arguments in (
                (ReadFile(), {"path": "sub/secret.txt"}),
                (WriteFile(), {"path": f"sub/new{number}.txt", "content": "x"}),
                (WriteFile(), {"path": "sub/secret.txt", "content": f"harmless {number}\n"}),
            ):
                try:
                    seen.add((await tool.run(arguments, where)).text.split()[0])
                except ToolError:
                    seen.add("refused")
    assert SENTINEL not in "".join(seen)
    assert {"refused", "1|harmless", "Created"} <= seen
    assert snapshot(outside) == before


async def test_a_root_that_is_gone_is_an_error_and_no_way_out(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    write(inside, INSIDE)
    write(outside, OUTSIDE)
    where = context(inside)
    shutil.rmtree(inside)
    inside.symlink_to(outside)
    before = snapshot(outside)
    for tool, arguments in calls_on("secret.txt") + calls_on("new.txt"):
        with pytest.raises(ToolError):
            await tool.run(arguments, where)
    assert snapshot(outside) == before


async def test_what_was_granted_may_be_touched_and_nothing_beside_it(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    write(inside, INSIDE)
    write(outside, OUTSIDE)
    request = await ReadFile().request({"path": str(outside / "secret.txt")}, context(inside))
    assert (request.outside, request.paths) == (True, (outside / "secret.txt",))
    roots = context(inside)
    granted = type(roots)("s", inside, roots.roots, roots.client, granted=request.paths)
    assert SENTINEL in (await ReadFile().run({"path": "../outside/secret.txt"}, granted)).text
    with pytest.raises(ToolError, match="outside the folders"):
        await ReadFile().run({"path": "../outside/folder/more.txt"}, granted)


@pytest.mark.parametrize("target", [".env", ".git/config", "folder/other.txt"])
async def test_a_link_that_is_swapped_after_its_call_was_allowed_leads_nowhere(tmp_path, target):
    """Also inside the folders: what was judged was another file."""
    write(tmp_path, {"plain.txt": "plain\n", target: f"{SENTINEL}\n", "folder/plain.txt": "plain\n"})
    link = tmp_path / "link.txt"
    link.symlink_to("plain.txt")
    before = context(tmp_path)
    for tool, arguments in calls_on("link.txt"):
        link.unlink()
        link.symlink_to("plain.txt")
        try:
            request = await tool.request(arguments, before)
        except ToolError:
            continue  # what cannot be done at all is not allowed either
        assert (request.secret, request.risk, request.outside) == (False, "", False)
        link.unlink()
        link.symlink_to(target)
        with pytest.raises(ToolError, match="led elsewhere when it was allowed"):
            await tool.run(arguments, replace(before, judged=request.paths))
    assert (tmp_path / target).read_text() == f"{SENTINEL}\n"


async def test_what_was_judged_is_what_runs(tmp_path):
    write(tmp_path, {"plain.txt": "plain\n"})
    (tmp_path / "link.txt").symlink_to("plain.txt")
    request = await ReadFile().request({"path": "link.txt"}, context(tmp_path))
    outcome = await ReadFile().run({"path": "link.txt"}, replace(context(tmp_path), judged=request.paths))
    assert outcome.text == "1|plain\n"
