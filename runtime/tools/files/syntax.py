"""Whether a changed file can still be read by what reads such files, by the ending of its name. Pure.

The module with the checks is imported when the first such file is changed. Only what was in order before is
spoken of: a file in a dialect of its own is not called broken.
"""

from collections.abc import Callable
from pathlib import PurePath

_CHECKS = {
    ".py": "python",
    ".pyi": "python",
    ".json": "json",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}
_MOST = 200_000
"""Characters of the largest text that is looked at."""
_WITH_COMMENTS = ("tsconfig", "jsconfig", "devcontainer", "settings", "launch", "tasks", "extensions")
"""JSON that editors and compilers read with comments in it."""


def broken(name: str, before: str | None, after: str) -> str:
    """What is wrong with the text now, as `line 3: …`, and was not before; '' for nothing.

    name: of the file. before: None for a new file.
    """
    path = PurePath(name)
    kind = _CHECKS.get(path.suffix.lower())
    if kind is None or max(len(after), len(before or "")) > _MOST:
        return ""
    if kind == "json" and path.name.lower().startswith(_WITH_COMMENTS):
        return ""
    from runtime.tools.files import syntax_checks

    check: Callable[[str], str] = getattr(syntax_checks, f"{kind}_fault")
    wrong = check(after)
    return "" if not wrong or (before is not None and before.strip() and check(before)) else wrong
