"""Where the user's settings and data live on this platform. Reads no file."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from runtime.values.errors import ConfigError

APP = "wholeturn"
PROJECT_FILE = ".wholeturn.toml"
_LINUX = {"config": ("XDG_CONFIG_HOME", ".config"), "data": ("XDG_DATA_HOME", ".local/share")}


def config_dir(env: Mapping[str, str]) -> Path:
    """The folder of `config.toml` and of what was trusted; WHOLETURN_CONFIG_DIR names another.

    Raises ConfigError when it would lie in a home folder and there is none; so do all below.
    """
    return _folder("config", env, "WHOLETURN_CONFIG_DIR")


def data_dir(env: Mapping[str, str]) -> Path:
    """The folder of the session store; WHOLETURN_DATA_DIR names another."""
    return _folder("data", env, "WHOLETURN_DATA_DIR")


def user_file(env: Mapping[str, str]) -> Path:
    """The user's settings file."""
    return config_dir(env) / "config.toml"


def default_store(env: Mapping[str, str]) -> str:
    """The session store when no setting names one."""
    return str(data_dir(env) / "sessions.db")


def answers_dir(env: Mapping[str, str]) -> str:
    """Where answers about permission that hold for good are kept; '' for nowhere, without a home folder."""
    try:
        return str(config_dir(env) / "permissions")
    except ConfigError:
        return ""


def here() -> str:
    """The folder that the process stands in. One that was removed under it counts as the root."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def absolute(path: str, folder: str) -> str:
    """`path` with ~ expanded, relative ones taken from `folder`. Links are left as they are."""
    return os.path.abspath(os.path.join(folder, os.path.expanduser(path)))


def short(path: str) -> str:
    """`path` with the home folder as ~, for people."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if home != "/" and path.startswith(home + os.sep) else path


def _folder(kind: str, env: Mapping[str, str], override: str) -> Path:
    if env.get(override):
        return Path(absolute(env[override], here()))
    if sys.platform.startswith("linux"):
        return _xdg(*_LINUX[kind], env)
    # Loaded here alone: on Linux its answer is `_xdg`, and its import takes longer than all the rest.
    import platformdirs

    find = platformdirs.user_config_path if kind == "config" else platformdirs.user_data_path
    return find(APP, appauthor=False)


def _xdg(variable: str, fallback: str, env: Mapping[str, str]) -> Path:
    # The XDG base directory rule: a relative path in the variable counts as unset.
    named = env.get(variable, "")
    base = named if os.path.isabs(named) else os.path.join(os.path.expanduser("~"), fallback)
    if not os.path.isabs(base):
        # Nothing may be looked for, or made, below wherever the process happens to stand.
        raise ConfigError(
            "your home folder is not known: set HOME, or WHOLETURN_CONFIG_DIR and WHOLETURN_DATA_DIR"
        )
    return Path(base, APP)
