"""Which folders' project files the user trusts: one small file a folder, naming the digest that was trusted.

A file a folder, so that two commands at once cannot lose each other's word. A changed project file has
another digest and is untrusted again.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from acp_server.config.keys import printable
from acp_server.config.paths import config_dir
from runtime.errors import ConfigError
from runtime.file_access import read_text, writing


class Trusted(NamedTuple):
    """A folder, links resolved, with what was trusted there: the sha256 of the project file as it was then,
    and of its prompt files; '' for none.
    """

    folder: str
    digest: str
    prompts: str = ""


def resolved(folder: str | Path) -> str:
    """The folder by its real name, whether it is there or not."""
    return os.path.realpath(folder)


def is_trusted(env: Mapping[str, str], folder: str | Path, digest: str) -> bool:
    """Whether the user trusted this content in this folder. An unreadable record is no trust."""
    found = _found(env, folder)
    return found is not None and bool(digest) and found.digest == digest


def are_prompts_trusted(env: Mapping[str, str], folder: str | Path, digest: str) -> bool:
    """The same for the folder's prompt files, all together."""
    found = _found(env, folder)
    return found is not None and bool(digest) and found.prompts == digest


def trust(env: Mapping[str, str], folder: str | Path, digest: str, prompts: str = "") -> None:
    """Remember it, over what was remembered of that folder. Raises ConfigError."""
    real = resolved(folder)
    record = _record(env, real)
    text = json.dumps({"folder": real, "sha256": digest, "prompts": prompts})
    try:
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = record.with_suffix(f".{os.getpid()}.new")
        with writing(new, mode=0o600) as file:
            os.chmod(new, 0o600)
            file.write(text.encode())
        os.replace(new, record)
    except OSError as error:
        raise ConfigError(f"{record.parent}: trust cannot be recorded: {error.strerror}") from error


def revoke(env: Mapping[str, str], folder: str | Path) -> bool:
    """Forget a folder; False if it was not trusted. Raises ConfigError."""
    record = _record(env, resolved(folder))
    try:
        record.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{record}: cannot be removed: {error.strerror}") from error
    return True


def trusted_folders(env: Mapping[str, str]) -> list[Trusted]:
    """Every folder that is remembered, by name."""
    found = [_read(record) for record in _records(env)]
    return sorted((entry for entry in found if entry), key=lambda entry: entry.folder)


def described(entry: Trusted) -> str:
    """One line of a list."""
    what = f"sha256 {entry.digest[:12]}…" if entry.digest else "its prompt files"
    return f"{printable(entry.folder, 4096)} ({what})"


def _found(env: Mapping[str, str], folder: str | Path) -> Trusted | None:
    real = resolved(folder)
    found = _read(_record(env, real))
    return found if found is not None and found.folder == real else None


def _records(env: Mapping[str, str]) -> Iterator[Path]:
    yield from (config_dir(env) / "trusted").glob("*.json")


def _record(env: Mapping[str, str], real: str) -> Path:
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
    return config_dir(env) / "trusted" / f"{name}.json"


def _read(record: Path) -> Trusted | None:
    try:
        content = json.loads(read_text(record))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    return Trusted(str(content.get("folder")), str(content.get("sha256")), str(content.get("prompts", "")))
