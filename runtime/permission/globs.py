"""Patterns of files: `*` and `?` stay within a name, `**` crosses folders, `[...]` is one of. Pure."""

import re
from functools import lru_cache

from runtime.permission.faults import RuleError

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.", re.DOTALL)
_FIXED = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def is_pattern(text: str) -> bool:
    """Whether the text can match anything but itself."""
    return any(sign in text for sign in "*?[")


def matches(pattern: str, path: str) -> bool:
    """Whether the whole path fits. Both with `/`, both relative or both absolute."""
    return _compiled(pattern).fullmatch(path) is not None


def reaches(pattern: str, path: str) -> bool:
    """Whether the path or a folder above it fits, whatever the case of its letters."""
    small, folded = pattern.casefold().rstrip("/"), path.casefold()
    ends = [index for index, sign in enumerate(folded) if sign == "/" and index] + [len(folded)]
    return any(matches(small, folded[:end]) for end in ends)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(_translated(token) for token in _TOKEN.findall(pattern)), re.DOTALL)


def _translated(token: str) -> str:
    if token in _FIXED:
        return _FIXED[token]
    if len(token) > 2 and token[0] == "[":
        inside = token[1:-1].replace("\\", "\\\\").replace("[", "\\[").replace("&&", "&").replace("~~", "~")
        inside = inside.replace("||", "|").replace("--", "-")
        negated = inside.startswith("!")
        return (
            f"(?!/)[{'^' if negated else ''}{inside[1:] if negated else inside.replace('^', chr(92) + '^')}]"
        )
    return re.escape(token)


def check_glob(pattern: str) -> None:
    """Raises RuleError for what can fit no path."""
    if "\\" in pattern:
        raise RuleError("must be written with / between folders")
    if pattern.startswith("~"):
        raise RuleError("must name a folder by its whole path: ~ is not known here")
    if ".." in pattern.split("/"):
        raise RuleError("must not hold ..: paths are compared after they are resolved")
    try:
        _compiled(pattern.casefold())
        _compiled(pattern)
    except re.error:
        raise RuleError("has a [...] that means nothing") from None
