"""The two entry points: the user's settings once at start-up, a session's settings for its folder.

Knows which sources there are and in what order; each step is a module of its own. A start without any
setting imports no parser and no schema, since an editor's first session waits for this.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from acp_server.config.build import build
from acp_server.config.layers import Layer, Source, Tree
from acp_server.config.merge import Merged
from acp_server.config.paths import PROJECT_FILE, absolute, here, user_file
from acp_server.config.settings import Options, SessionConfig, given_variables
from runtime.values.errors import ConfigError


class View(NamedTuple):
    """One result with what it was made of, for showing. layers: weaker first, as they counted."""

    config: SessionConfig
    merged: Merged
    layers: tuple[Layer, ...] = ()


class Loaded(NamedTuple):
    """Everything but the project's file. base: the settings of a folder that has none."""

    options: Options
    env: Mapping[str, str]
    user: Layer | None
    named: Layer | None
    base: View


def load_user_config(options: Options, env: Mapping[str, str]) -> Loaded:
    """Read every source that does not depend on a session. Raises ConfigError with all faults found.

    env is kept and read again by `for_session`; relative paths of flags and variables start here.
    """
    user = _optional(user_file(env), "user")
    named = _named(options.config) if options.config else None
    return Loaded(options, env, user, named, _view(options, env, [user, named]))


def for_session(loaded: Loaded, cwd: Path) -> SessionConfig:
    """The settings of a session in `cwd`. Costs one look for a file when there is no project file.

    Raises ConfigError. What an untrusted project file may not set is left out and told in `warnings`.
    """
    return view_for(loaded, cwd).config


def view_for(loaded: Loaded, cwd: Path) -> View:
    """As `for_session`, with the sources that made it."""
    project = project_layer(cwd)
    if project is None:
        return loaded.base
    counted, warnings = _believed(project, loaded.base.merged.tree, loaded.env)
    return _view(loaded.options, loaded.env, [loaded.user, counted, loaded.named], warnings)


def project_layer(folder: Path) -> Layer | None:
    """The folder's project file as it stands, trusted or not; None if there is none."""
    return _optional(folder / PROJECT_FILE, "project")


def _view(
    options: Options, env: Mapping[str, str], files: list[Layer | None], warnings: tuple[str, ...] = ()
) -> View:
    read = [layer for layer in files if layer is not None]
    if not read and not options.set_something() and not given_variables(env):
        return View(build(Merged(), env), Merged())
    # Schema and parser are loaded from here on only: see the module's opening.
    from acp_server.config.combine import combine

    merged, layers, remarks = combine(options, env, read)
    return View(build(merged, env, (*warnings, *remarks)), merged, tuple(layers))


def _believed(project: Layer, own: Tree, env: Mapping[str, str]) -> tuple[Layer, tuple[str, ...]]:
    from acp_server.config import project_trust as rules
    from acp_server.config.check import faults
    from acp_server.config.combine import raise_faults
    from acp_server.config.project_trust import is_trusted

    raise_faults(faults(project))
    if is_trusted(env, project.folder, project.digest):
        return project, ()
    admitted = rules.admit(project, own)
    return admitted.layer, tuple(rules.refusals(admitted))


def _named(path: str) -> Layer:
    layer = _optional(Path(absolute(path, here())), "file")
    if layer is None:
        raise ConfigError(f"--config {path}: there is no such file")
    return layer


def _optional(path: Path, source: Source) -> Layer | None:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        pass  # the reader says what is wrong with it
    from acp_server.config.files import read_layer

    return read_layer(path, source)
