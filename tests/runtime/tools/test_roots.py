"""Confinement: what leads outside is refused, and special files never hold us."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from runtime.tools.sandbox.roots import Place, locate, opened_file, stat_place
from runtime.values.errors import ToolError
from tests.runtime.tools.support import context, write


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    write(inside, {"a.txt": "a", "sub/b.txt": "b"})
    write(tmp_path, {"secret.txt": "secret"})
    return inside


def read(place: Place) -> bytes:
    with opened_file(place) as descriptor:
        return os.read(descriptor, 100)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a.txt", "a.txt"),
        ("./sub/../a.txt", "a.txt"),
        ("{cwd}/sub/b.txt", "sub/b.txt"),
        ("file://{cwd}/a.txt", "a.txt"),
        ("FILE://localhost{cwd}/sub/b.txt", "sub/b.txt"),
        ("file://{cwd}/sub%2Fb.txt#L3-9", "sub/b.txt"),
        ("sub", "sub"),
        (".", "."),
        ("~", "~"),
        ("~root/x", "~root/x"),
        ("new/not/there", "new/not/there"),
    ],
)
def test_inside(folder, raw, expected):
    assert locate(raw.format(cwd=folder), context(folder)).shown == expected


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("..", "outside"),
        ("../secret.txt", "outside"),
        ("sub/../../secret.txt", "outside"),
        ("/etc/passwd", "outside"),
        ("/dev/zero", "outside"),
        ("file:///etc/passwd", "outside"),
        ("file://%2e%2e/etc", "not a file URI of this machine"),
        ("file://host/etc/passwd", "not a file URI of this machine"),
        ("file:///C:/Windows/x", "Windows path"),
        ("C:\\Windows\\x", "Windows path"),
        ("d:/x", "Windows path"),
        ("\\\\server\\share\\x", "Windows path"),
        ("a\0b", "NUL"),
        ("file:///a%00b", "NUL"),
        ("", "empty"),
        ("x" * 5000, "too long"),
        ("\ud800", "characters no file name can have"),
    ],
)
def test_refused(folder, raw, said):
    with pytest.raises(ToolError, match=said):
        locate(raw, context(folder))


def test_a_sibling_whose_name_begins_like_the_root_is_outside(folder):
    write(folder.parent, {"inside-not/x": "x"})
    with pytest.raises(ToolError, match="outside"):
        locate("../inside-not/x", context(folder))


def test_long_name_is_an_error_of_the_system_made_readable(folder):
    place = locate("n" * 300, context(folder))
    with pytest.raises(ToolError, match="name too long"):
        stat_place(place)


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret.txt", "..", "/dev/zero"])
def test_link_to_the_outside(folder, target):
    (folder / "link").symlink_to(target)
    with pytest.raises(ToolError, match=r"outside the folders of this session \(it leads to"):
        locate("link", context(folder))


def test_link_in_the_middle(folder):
    (folder / "up").symlink_to("..")
    with pytest.raises(ToolError, match="outside"):
        locate("up/secret.txt", context(folder))
    # `up/..` is the parent of where the link leads, not the folder that holds it.
    with pytest.raises(ToolError, match="outside"):
        locate("up/../inside/a.txt/../../../x", context(folder))


def test_link_inside_is_fine_and_shown_as_what_it_leads_to(folder):
    (folder / "link").symlink_to("sub/b.txt")
    place = locate("link", context(folder))
    assert (place.shown, read(place)) == ("sub/b.txt", b"b")


def test_link_in_a_circle(folder):
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    with pytest.raises(ToolError, match=r"leads in a circle|is a link"):
        read(locate("one", context(folder)))


def test_root_that_is_a_link(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    where = context(link)
    assert read(locate("a.txt", where)) == b"a"
    assert locate(f"{link}/sub", where).shown == "sub"
    assert locate(f"{folder}/sub", where).shown == "sub"


def test_root_replaced_by_a_link_to_elsewhere(folder):
    where = context(folder)
    os.rename(folder, folder.parent / "moved")
    folder.symlink_to("/etc")
    with pytest.raises(ToolError, match="outside"):
        locate("passwd", where)


def test_additional_root(folder):
    other = folder.parent / "other"
    write(other, {"c.txt": "c"})
    place = locate(f"{other}/c.txt", context(folder, other))
    assert (place.shown, read(place)) == (f"{other}/c.txt", b"c")


def test_root_of_everything():
    assert locate("/etc/passwd", context(Path("/"))).shown == "etc/passwd"


@pytest.mark.parametrize("swap", ["file", "folder"])
def test_swapped_for_a_link_between_check_and_open(folder, swap):
    place = locate("sub/b.txt", context(folder))
    if swap == "file":
        (folder / "sub/b.txt").unlink()
        (folder / "sub/b.txt").symlink_to("../../secret.txt")
    else:
        write(folder.parent, {"elsewhere/b.txt": "secret"})
        os.rename(folder / "sub", folder / "away")
        (folder / "sub").symlink_to("../elsewhere")
    with pytest.raises((ToolError, FileNotFoundError)) as caught:
        read(place)
    assert "secret" not in str(caught.value)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # A socket's path is short: bind by a relative name.
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize(("make", "said"), [(make_fifo, "a FIFO"), (make_socket, "a socket")])
def test_special_files_are_refused_at_once(folder, make, said):
    make(folder / "special")
    with pytest.raises(ToolError, match=f"special is {said}, not a regular file"):
        read(locate("special", context(folder)))


def test_device_is_refused():
    with pytest.raises(ToolError, match="zero is a device"):
        read(locate("zero", context(Path("/dev"))))


def test_fifo_that_replaces_a_file_after_the_check_does_not_block(folder, monkeypatch):
    """The second look, at what was opened: the first one is made to see the file that was there before."""
    place = locate("a.txt", context(folder))
    before = os.stat(folder / "a.txt")
    (folder / "a.txt").unlink()
    os.mkfifo(folder / "a.txt")
    monkeypatch.setattr(os, "stat", lambda *_, **__: before)
    with pytest.raises(ToolError, match="a FIFO"):
        read(place)


@pytest.mark.skipif(os.name == "nt", reason="no permission bits")
def test_unreadable(monkeypatch):
    """As another user when we are root, who may read everything."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        folder.chmod(0o755)
        write(folder, {"closed.txt": "x", "search-only/open.txt": "open"})
        (folder / "closed.txt").chmod(0)
        (folder / "search-only").chmod(0o711)
        place = locate("closed.txt", context(folder))
        as_root = os.geteuid() == 0
        if as_root:
            os.seteuid(65534)
        try:
            with pytest.raises(ToolError, match="permission denied"):
                read(place)
            assert read(locate("search-only/open.txt", context(folder))) == b"open"
        finally:
            if as_root:
                os.seteuid(0)


def test_no_descriptor_is_left_open(folder):
    where = context(folder)
    (folder / "link").symlink_to("sub")
    os.mkfifo(folder / "fifo")

    def open_now() -> int:
        return len(os.listdir("/dev/fd"))

    before = open_now()
    for raw in ("a.txt", "sub/b.txt", "link", "fifo", "none", "sub/none/x", "."):
        try:
            read(locate(raw, where))
        except (ToolError, FileNotFoundError):
            continue
    assert open_now() == before
