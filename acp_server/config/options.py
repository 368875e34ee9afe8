"""What the command line and the environment give, still as text. Knows no command, no file and no schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping

PREFIX = "WHOLETURN_"
NO_SETTINGS = ("WHOLETURN_CONFIG_DIR", "WHOLETURN_DATA_DIR", "WHOLETURN_LOG", "WHOLETURN_UNSTABLE")
"""Variables of ours that stand for no key of the file."""

NAMED = (
    ("provider", "NAME", "provider of the default agent, or a kind of provider"),
    ("model", "NAME", "model of the default agent"),
    ("profile", "NAME", "runtime profile of the default agent, or a preset's name"),
    ("mode", "MODE", "permission mode that sessions begin in: ask, accept_edits, plan or yolo"),
    ("store", "PATH", 'where sessions are kept: a file, "memory" or postgresql://…'),
)


class Options(NamedTuple):
    """What was given as flags. assignments: `key=value` texts of --set, in order."""

    config: str | None = None
    assignments: tuple[str, ...] = ()
    provider: str | None = None
    model: str | None = None
    profile: str | None = None
    mode: str | None = None
    store: str | None = None

    def set_something(self) -> bool:
        """Whether a flag sets something (a file named by --config counts by what is in it)."""
        return bool(self.assignments) or any(getattr(self, name) is not None for name, _, _ in NAMED)


def add_options(parser: ArgumentParser) -> None:
    """Give a command the flags that change settings; read them back with `options_of`.

    A flag that is not given leaves no trace, so the same flags may stand before and after a command's name.
    """
    from argparse import SUPPRESS  # the caller has it loaded; a start without a command line has not

    group = parser.add_argument_group("settings", argument_default=SUPPRESS)
    group.add_argument("--config", metavar="FILE", help="one more settings file, over the others")
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="assignments",
        action="append",
        help="set one key, e.g. runtime_profiles.default.max_context_tokens=12000",
    )
    for name, value, text in NAMED:
        group.add_argument(f"--{name}", metavar=value, help=text)


def options_of(arguments: Namespace) -> Options:
    """The flags of a parsed command line; a command without them gives none."""
    given = vars(arguments)
    named = {name: given.get(name) for name in ("config", *(name for name, _, _ in NAMED))}
    return Options(assignments=tuple(given.get("assignments") or ()), **named)


def given_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that set something; an empty one counts as not set."""
    return {
        name: value
        for name, value in env.items()
        if name.startswith(PREFIX) and value and name not in NO_SETTINGS
    }
