"""The gateway's token: made once, kept in a file that only its owner can read. Knows no request."""

import hmac
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from runtime.values.errors import ConfigError
from runtime.values.file_access import NO_WAITING, reading, writing

FILE = "gateway.token"
_BYTES = 32
_FORM = re.compile(r"[A-Za-z0-9_-]{32,512}")
"""What may stand in a header and in the name of a subprotocol alike."""


def read_or_make(path: Path) -> tuple[str, bool]:
    """The token in the file, and whether it was made just now.

    Raises ConfigError when others can read the file, or there is something else in it.
    """
    made = not _is_there(path) and _make(path)
    return _read(path), made


def is_same(given: str, token: str) -> bool:
    """Whether the token is the right one, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _is_there(path: Path) -> bool:
    """Whether there is anything by that name; where nobody may look, the reading tells why."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _make(path: Path) -> bool:
    """Whether this process made it: of two that start at once, one does. It appears whole."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with writing(draft, os.O_CREAT | os.O_EXCL, 0o600) as file:
            file.write(f"{secrets.token_urlsafe(_BYTES)}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except OSError as error:
        if _is_there(path):
            return False
        raise ConfigError(f"{path}: the token cannot be kept there: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink()
    return True


def _read(path: Path) -> str:
    try:
        with reading(path, os.O_NOFOLLOW | NO_WAITING) as file:
            _private(path, os.fstat(file.fileno()))
            text = file.read(1024).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(f"{path}: the token cannot be read: {reason}") from error
    if not _FORM.fullmatch(text):
        raise ConfigError(f"{path}: there is no token in it; remove the file, and a new one is made")
    return text


def _private(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigError(f"{path}: is not a regular file")
    if facts.st_uid != os.geteuid():
        raise ConfigError(f"{path}: belongs to someone else, who could know the token")
    if facts.st_mode & 0o077:
        raise ConfigError(f"{path}: others can read it; remove it, and a new one is made")
