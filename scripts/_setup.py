"""Makes the project's environment from the lock files. Standard library only; knows no other script.

Called by `scripts/_setup`: `check KIND` exits 0 when `.venv` has what KIND needs, `make KIND` sees to it.
Two of them at once are safe: the second waits for the first, and then finds the work done.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# The interpreter outside: this program may itself run on the `.venv` that has to be made anew.
BASE = getattr(sys, "_base_executable", sys.executable)
STAMP = VENV / "wholeturn-stamp"
HALF_MADE = VENV / "half-made"
LOCKS_FOLDER = Path("scripts/locks")
LOCKS = {
    "runtime": ("requirements.lock", "requirements-build.lock"),
    "local": ("requirements.lock", "requirements-local.lock", "requirements-build.lock"),
    "dev": ("requirements-dev.lock", "requirements-build.lock"),
}
SERVES = {"runtime": ("runtime",), "local": ("runtime", "local"), "dev": ("runtime", "local", "dev")}
"""Kind of environment -> what it can be used for."""
PACKAGES = ("acp_server", "runtime", "schemas")
# The lock decides alone what is installed and where: settings of the machine that say otherwise are left out.
UNWANTED = (
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PIP_NO_COMPILE",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
)


def digest() -> str:
    """Changes whenever the environment has to be looked at again: locks, metadata, Python, place."""
    value = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}\n".encode())
    for name in sorted({name for names in LOCKS.values() for name in names}):
        value.update((ROOT / LOCKS_FOLDER / name).read_bytes())
    value.update((ROOT / "pyproject.toml").read_bytes())
    return value.hexdigest()


def is_ready(kind: str) -> bool:
    """Whether the stamp vouches for `kind`, or for one that serves it, too."""
    try:
        stamped, of = STAMP.read_text().split()
    except (OSError, ValueError):
        return False
    whole = PYTHON.exists() and not HALF_MADE.exists()
    return whole and of == digest() and kind in SERVES.get(stamped, ())


def run(what: str, *command: str | Path) -> None:
    """Run quietly; when it fails, show what it said and stop."""
    environment = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    environment["PIP_CONSTRAINT"] = ""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stdout.decode(errors="replace"))
        sys.exit(f"Set-up failed at: {what}. It starts afresh the next time.")


def usable() -> bool:
    """Whether `.venv` has a working Python of this version, with pip, and was not left half made."""
    if HALF_MADE.exists() or not PYTHON.exists():
        return False
    probe = f"import sys, pip; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
    try:
        return not subprocess.run([PYTHON, "-I", "-c", probe], capture_output=True, check=False).returncode
    except OSError:
        return False


def make(kind: str) -> None:
    """Create or renew `.venv` for `kind`. A break on the way leaves a mark: the next one starts afresh."""
    if not usable():
        if VENV.is_symlink():
            VENV.unlink()
        elif VENV.exists():
            shutil.rmtree(VENV)
        VENV.mkdir()
        HALF_MADE.touch()
        run("creating .venv", BASE, "-m", "venv", VENV)
    HALF_MADE.touch()
    pip = (
        PYTHON,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "install",
        "--no-deps",
    )
    locks = [part for name in LOCKS[kind] for part in ("-r", str(LOCKS_FOLDER / name))]
    run("installing the locked packages", *pip, "--compile", "--require-hashes", *locks)
    run("installing the project", *pip, "--no-build-isolation", "--no-index", "-e", ".")
    run("compiling the project", PYTHON, "-m", "compileall", "-q", *PACKAGES)
    STAMP.write_text(f"{kind} {digest()}\n")
    HALF_MADE.unlink()


def main(action: str, kind: str) -> int:
    """Check, or make while holding the lock, which is this very file."""
    if action == "check":
        return not is_ready(kind)
    with open(__file__, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Waiting for another set-up to finish ...", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_ready(kind):
            begun = time.monotonic()
            version = ".".join(map(str, sys.version_info[:2]))
            print(f"Setting up .venv with Python {version} (once, about half a minute) ...", file=sys.stderr)
            make(kind)
            print(f"Ready after {time.monotonic() - begun:.0f} s.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
