"""API keys as `wholeturn setup` stores them, and what of a setting's value may be shown.

A key is in the system's keyring where there is one (the extra `keyring`), else in a file that only its
owner may read; that file also says which keys are in the keyring, so that nobody without one there loads a
library. A variable that is set stands above what is stored. No key is ever shown or logged.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol, cast

from acp_server.config.layers import Key
from acp_server.config.paths import config_dir
from runtime.store.common.faults import is_address, masked
from runtime.values.errors import ConfigError
from runtime.values.file_access import reading, writing

HIDDEN = "(hidden)"
_TELLING = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=//)[^/@]*@")
_QUERY = re.compile(r"\?.*")


def showable(key: Key, value: object) -> object:
    """The value with everything left out that may give access to something.

    Headers and variables never show; options show unless their name tells of a secret; an address loses its
    user, password and query.
    """
    match key:
        case ("store",) if isinstance(value, str) and is_address(value):
            return masked(value)
        case ("providers", _, "headers", *_):
            return HIDDEN
        case ("providers", _, "base_url") if isinstance(value, str):
            return _QUERY.sub(f"?{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", value))
        case ("providers", _, "options", *names):
            return _masked(value, any(_TELLING.search(name) for name in names))
        case ("mcp_servers", _, "env" | "headers", *_):
            return HIDDEN
        case ("mcp_servers", _, "url") if isinstance(value, str):
            return _QUERY.sub(f"?{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", value))
        case ("mcp_servers", _, "args") if isinstance(value, list):
            return _arguments(value)
        case _:
            return value


def _arguments(values: list[object]) -> list[object]:
    """A command line without the values of telling options, `--token=x` or `--token x`."""
    shown: list[object] = []
    telling = False
    for value in map(str, values):
        name, equals, _ = value.partition("=")
        hides = telling or (bool(equals) and bool(_TELLING.search(name)))
        shown.append(HIDDEN if telling else f"{name}={HIDDEN}" if hides else value)
        telling = not equals and value.startswith("-") and bool(_TELLING.search(value))
    return shown


def _masked(value: object, telling: bool) -> object:
    if isinstance(value, dict):
        return {name: _masked(inner, telling or bool(_TELLING.search(name))) for name, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, telling) for inner in value]
    return HIDDEN if telling and isinstance(value, str) else value


SERVICE = "wholeturn"
IN_KEYRING: Mapping[str, str] = {"in": "keyring"}


class Keyring(Protocol):
    """What is used of the library `keyring`."""

    def get_password(self, service: str, name: str) -> str | None: ...

    def set_password(self, service: str, name: str, key: str) -> None: ...

    def delete_password(self, service: str, name: str) -> None: ...


class KeyedEnviron(Mapping[str, str]):
    """An environment in which a key that is stored stands for its variable, unless that is set."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._known: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if not self._env.get(name) and name not in self._known:
            stored = stored_key(self._env, name)
            if stored is None:
                return self._env[name]
            self._known[name] = stored
        return self._env.get(name) or self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._env)

    def __len__(self) -> int:
        return len(self._env)


def keys_file(env: Mapping[str, str]) -> Path:
    """Where keys are, or where it says that they are in the keyring. Raises ConfigError."""
    return config_dir(env) / "keys.json"


def is_stored(env: Mapping[str, str], variable: str) -> bool:
    """Whether a key is stored for the variable. Asks no keyring."""
    return variable in _entries(env)


def stored_key(env: Mapping[str, str], variable: str) -> str | None:
    """The key that is stored for the variable. Blocks while a keyring is asked. Raises ConfigError."""
    entry = _entries(env).get(variable)
    if entry is None:
        return None
    if entry.get("in") != IN_KEYRING["in"]:
        return entry.get("key") or None
    ring = _keyring()
    try:
        return None if ring is None else ring.get_password(SERVICE, variable)
    except Exception as error:  # noqa: BLE001 - a locked or broken keyring fails in any way it likes
        raise ConfigError(
            f"The key for {variable} cannot be read from the keyring: {type(error).__name__}"
        ) from None


def store_key(env: Mapping[str, str], variable: str, key: str) -> str:
    """Keep a key over what was kept for the variable; says where it is. Raises ConfigError."""
    entries, ring = _entries(env), _keyring()
    try:
        if ring is not None:
            ring.set_password(SERVICE, variable, key)
    except Exception:  # noqa: BLE001 - as above; the file does as well
        ring = None
    _write(env, {**entries, variable: dict(IN_KEYRING) if ring else {"in": "file", "key": key}})
    return "the system's keyring" if ring else str(keys_file(env))


def forget_key(env: Mapping[str, str], variable: str) -> bool:
    """Remove what is stored for the variable; False when nothing was. Raises ConfigError."""
    entries = _entries(env)
    entry = entries.pop(variable, None)
    if entry is None:
        return False
    ring = _keyring() if entry.get("in") == IN_KEYRING["in"] else None
    try:
        if ring is not None:
            ring.delete_password(SERVICE, variable)
    except Exception as error:  # noqa: BLE001 - as above
        raise ConfigError(f"The key cannot be removed from the keyring: {type(error).__name__}") from None
    _write(env, entries)
    return True


def _keyring() -> Keyring | None:
    """The system's keyring; None without the library, and where it has no safe place to offer."""
    try:
        import keyring as library

        usable = library.get_keyring().priority >= 1
    except Exception:  # noqa: BLE001 - looking for a keyring must never be what fails
        return None
    return cast(Keyring, library) if usable else None


def _entries(env: Mapping[str, str]) -> dict[str, dict[str, str]]:
    path = keys_file(env)
    try:
        with reading(path) as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                raise ConfigError(f"{path}: others may read it; `chmod 600` it, and change the keys in it")
            content = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        raise ConfigError(f"{path}: cannot be read; run `wholeturn setup` again after removing it") from None
    keys = content.get("keys") if isinstance(content, dict) else None
    entries = keys.items() if isinstance(keys, dict) else ()
    return {
        name: {word: value for word, value in entry.items() if isinstance(value, str)}
        for name, entry in entries
        if isinstance(entry, dict)
    }


def _write(env: Mapping[str, str], entries: Mapping[str, Mapping[str, str]]) -> None:
    path = keys_file(env)
    new = path.with_suffix(f".{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with writing(new, os.O_CREAT | os.O_EXCL, 0o600) as file:
            file.write(json.dumps({"version": 1, "keys": entries}, indent=1).encode())
        os.replace(new, path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
