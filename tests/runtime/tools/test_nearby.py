"""What is looked at without a worker thread: plain places on a local disk, and nothing else."""

import os
import threading
from pathlib import Path

import pytest

from runtime.ports import ToolContext
from runtime.tools.sandbox import path_requests
from runtime.tools.sandbox.roots import resolve
from runtime.values.errors import ToolError
from tests.support.fakes import RecordingClient

ROOT_LINE = "22 1 254:0 / / rw,relatime shared:1 - {kind} /dev/root rw\n"


@pytest.fixture(autouse=True)
def _forgotten():
    path_requests.is_local.cache_clear()
    yield
    path_requests.is_local.cache_clear()


def context(root: Path) -> ToolContext:
    return ToolContext("s", root, (root,), RecordingClient())


def mounts(tmp_path: Path, *lines: str) -> Path:
    table = tmp_path / "mountinfo"
    table.write_text("".join(lines))
    return table


@pytest.mark.parametrize(
    ("kind", "local"), [("ext4", True), ("tmpfs", True), ("nfs4", False), ("fuse.sshfs", False)]
)
def test_only_kinds_that_no_other_machine_answers_for_are_local(tmp_path: Path, kind: str, local: bool):
    assert path_requests.is_local(str(tmp_path), mounts(tmp_path, ROOT_LINE.format(kind=kind))) is local


def test_the_nearest_mount_counts_and_the_last_on_one_place(tmp_path: Path):
    work = tmp_path / "a b"
    work.mkdir()
    name = str(work).replace(" ", "\\040")
    first = f"30 22 0:40 / {name} rw - nfs4 server:/x rw\n"
    table = mounts(tmp_path, ROOT_LINE.format(kind="ext4"), first)
    assert not path_requests.is_local(str(work), table)
    path_requests.is_local.cache_clear()
    table.write_text(table.read_text() + f"31 30 0:41 / {name} rw - xfs /dev/sdb rw\n")
    assert path_requests.is_local(str(work), table)


def test_without_a_table_of_mounts_nothing_is_local(tmp_path: Path):
    assert not path_requests.is_local(str(tmp_path), tmp_path / "missing")


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_requests, "is_local", lambda folder: True)


@pytest.mark.usefixtures("local")
def test_a_plain_file_or_a_missing_one_is_near(tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x")
    for raw in ("src/a.py", "src", "src/missing.py", "missing/deeper", str(tmp_path / "src" / "a.py")):
        assert path_requests.plain_path(raw, context(tmp_path)) == tmp_path / raw


@pytest.mark.usefixtures("local")
def test_what_may_lead_elsewhere_is_not(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "out").mkdir()
    (root / "link").symlink_to(tmp_path / "out")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    strange = (".", "./a", "a//b", "a/", f"{root}/")
    for raw in ("link/a.txt", "loop", "pipe", "../out/a", "src/../../out", "/etc/hostname", str(tmp_path)):
        assert path_requests.plain_path(raw, context(root)) is None, raw
    for raw in strange:
        assert path_requests.plain_path(raw, context(root)) is None, raw


@pytest.mark.usefixtures("local")
def test_a_root_that_is_reached_through_a_link_since_is_not(tmp_path: Path):
    (tmp_path / "up" / "root").mkdir(parents=True)
    around = context(tmp_path / "up" / "root")
    assert path_requests.plain_path("a.txt", around) is not None
    (tmp_path / "up").rename(tmp_path / "moved")
    (tmp_path / "else" / "root").mkdir(parents=True)
    (tmp_path / "up").symlink_to(tmp_path / "else")
    assert path_requests.plain_path("a.txt", around) is None
    (tmp_path / "up").unlink()
    (tmp_path / "up" / "root").mkdir(parents=True)
    assert path_requests.plain_path("a.txt", around) is not None


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize(("raw", "known"), [("a.txt", True), ("link", False)])
async def test_what_is_known_to_be_plain_is_where_the_links_lead_too(tmp_path: Path, raw: str, known: bool):
    root = tmp_path.resolve()  # noqa: ASYNC240 - nothing else runs
    (root / "a.txt").write_text("x")
    (root / "link").symlink_to("a.txt")

    def work(plain: Path | None) -> tuple[Path | None, Path]:
        return plain, resolve(raw, context(root))

    assert await path_requests.look(raw, context(root), work) == (
        root / "a.txt" if known else None,
        root / "a.txt",
    )


@pytest.mark.usefixtures("local")
def test_another_device_below_the_root_is_not_near():
    # /proc is mounted below /, whose other folders are on a device of their own.
    assert path_requests.plain_path("/proc/self/status", context(Path("/"))) is None


@pytest.mark.usefixtures("local")
def test_an_impossible_path_is_the_same_error_as_ever(tmp_path: Path):
    with pytest.raises(ToolError, match="NUL"):
        path_requests.plain_path("a\0b", context(tmp_path))


async def test_the_look_itself_runs_in_a_thread_unless_the_place_is_near(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "a.txt").write_text("x")
    here = threading.get_ident()
    for local, same in ((True, True), (False, False)):
        monkeypatch.setattr(path_requests, "is_local", lambda folder, answer=local: answer)
        ran = await path_requests.look("a.txt", context(tmp_path), lambda _: threading.get_ident())
        assert (ran == here) is same
