"""A machine on which nothing is installed but Python and, from the wheel, the product. Knows no editor."""

import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
Kind = str
"""`wheel` or `sdist`."""


def built(kind: Kind, folder: Path) -> Path:
    """Build it out of the working tree; no network is needed."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{done.stdout}\n{done.stderr}")
    (found,) = (path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    return found


def needed(wheel: Path) -> Iterator[Distribution]:
    """All that an installation of the wheel without extras brings along, as it is installed here."""
    seen: set[str] = set()
    waiting = [(text, "") for text in asked_by(wheel)]
    while waiting:
        text, extra = waiting.pop()
        wanted = Requirement(text)
        key = f"{canonicalize_name(wanted.name)}{sorted(wanted.extras)}"
        if key in seen or (wanted.marker is not None and not wanted.marker.evaluate({"extra": extra})):
            continue
        seen.add(key)
        found = distribution(wanted.name)
        waiting += [(more, name) for more in found.requires or () for name in ("", *wanted.extras)]
        yield found


def asked_by(wheel: Path) -> list[str]:
    """The requirements that the wheel states."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])


def tops(found: Distribution) -> set[PurePosixPath]:
    """The files and folders of a distribution right in site-packages."""
    parts = {PurePosixPath(PurePosixPath(str(file)).parts[0]) for file in found.files or ()}
    return {part for part in parts if part.name not in ("..", "__pycache__", "bin")}


def installed(wheel: Path, folder: Path) -> Path:
    """A new environment with the wheel and what it asks for, nothing else. Gives its folder of commands."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3.*/site-packages")
    for found in needed(wheel):
        for top in tops(found):
            there = Path(str(found.locate_file(str(top))))
            if there.exists() and not (site / top).exists():
                (site / top).symlink_to(there)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    command = [*pip, "--no-index", "--no-deps", "--no-warn-script-location", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{done.stdout}\n{done.stderr}")
    return folder / "bin"
