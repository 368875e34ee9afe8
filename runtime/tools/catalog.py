"""Which tools there are, by name. A tool's module is imported when the tool is first asked for."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import cast

from runtime.ports import Tool
from runtime.tools.arguments import ToolSettings
from runtime.values.errors import ConfigError

_FACTORIES = {
    "read_file": ("runtime.tools.files.read_file", "ReadFile"),
    "list_dir": ("runtime.tools.files.list_dir", "ListDir"),
    "find_files": ("runtime.tools.search.find_files", "FindFiles"),
    "search_text": ("runtime.tools.search.search_text", "SearchText"),
    "edit_file": ("runtime.tools.files.edit_file", "EditFile"),
    "write_file": ("runtime.tools.files.write_file", "WriteFile"),
    "run_command": ("runtime.tools.shell.run_command", "RunCommand"),
    "update_plan": ("runtime.tools.talk.ask_and_plan", "UpdatePlan"),
    "exit_plan_mode": ("runtime.tools.talk.ask_and_plan", "ExitPlanMode"),
    "ask_user": ("runtime.tools.talk.ask_and_plan", "AskUser"),
    "fetch_url": ("runtime.tools.web.fetch_url", "FetchUrl"),
    "recall_history": ("runtime.tools.talk.recall_history", "RecallHistory"),
    "set_goal": ("runtime.tools.talk.ask_and_plan", "SetGoal"),
}
_CONFIGURED = frozenset({"run_command", "fetch_url"})
"""Those that are made with settings."""


def names() -> tuple[str, ...]:
    """All names, in the order in which a model is told of the tools."""
    return tuple(_FACTORIES)


def load(name: str, settings: ToolSettings | None = None) -> Tool:
    """A new tool. Raises ConfigError for a name that is not in the catalog."""
    if name not in _FACTORIES:
        raise ConfigError(f"there is no tool named {name!r}; known: {', '.join(_FACTORIES)}")
    module, factory = _FACTORIES[name]
    made = cast(Callable[..., Tool], getattr(import_module(module), factory))
    return made(settings) if name in _CONFIGURED else made()


def load_all(wanted: Iterable[str] | None = None, settings: ToolSettings | None = None) -> tuple[Tool, ...]:
    """The tools named, in that order; None: all. Raises ConfigError."""
    return tuple(load(name, settings) for name in (names() if wanted is None else wanted))
