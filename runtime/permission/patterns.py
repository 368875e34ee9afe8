"""Patterns of files and of addresses, and what can be wrong with a rule. Pure; asks no file system.

Files: `*` and `?` stay within a name, `**` crosses folders, `[...]` is one of. Addresses:
`https://host/path*`, `host`, `*.host`; one that browsers and libraries could read in two ways is covered by
no rule.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class RuleError(ValueError):
    """A rule that cannot be used; the text is a clause about it: `must begin with a tool's name`."""


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


_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_PATTERN = re.compile(rf"(?:(https?)://)?(\*\.)?({_HOST})(?::([0-9]{{1,5}}))?(/[!-)+-~]*)?(\*)?")
_ADDRESS = re.compile(rf"(https?)://({_HOST})(?::([0-9]{{1,5}}))?(/[!-~]*)?", re.IGNORECASE)
_STEPS = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:$|[/?#])|\\|%2f|%5c", re.IGNORECASE)
_NAMED_HOST = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}")
_PORTS = {"http": "80", "https": "443"}


class AddressPattern(NamedTuple):
    """below: hosts below `host` are meant, not it. path: '' for all, else exact unless `more`."""

    scheme: str
    host: str
    port: str
    below: bool
    path: str
    more: bool


@lru_cache(maxsize=512)
def parse_address(text: str) -> AddressPattern:
    """Raises RuleError. Without a scheme https is meant."""
    found = _PATTERN.fullmatch(text)
    if found is None or (found[6] and not found[5]):
        raise RuleError("must be an address: https://example.org/docs/*, example.org or *.example.org")
    scheme = found[1] or "https"
    path = found[5] or ""
    if path == "/" and found[6]:
        path = ""
    return AddressPattern(
        scheme, found[3].lower(), found[4] or _PORTS[scheme], bool(found[2]), path, bool(found[6])
    )


def covers(pattern: AddressPattern, address: str) -> bool:
    """Whether the address is certainly one that the pattern means."""
    found = _ADDRESS.fullmatch(address)
    if found is None or _STEPS.search(found[4] or ""):
        return False
    scheme, host, path = found[1].lower(), found[2].lower(), found[4] or "/"
    if (scheme, found[3] or _PORTS[scheme]) != (pattern.scheme, pattern.port):
        return False
    return _host_fits(pattern, host) and _path_fits(pattern, path)


def may_mean(pattern: AddressPattern, address: str) -> bool:
    """Whether the address could lead to what the pattern names, by whatever scheme and port."""
    try:
        parts = urlsplit(address.strip())
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return True
    path = unquote(parts.path).casefold()
    steps = bool(_STEPS.search(parts.path))
    return _host_fits(pattern, host) and (steps or (path or "/").startswith(pattern.path.casefold()))


def suggest(address: str) -> str | None:
    """The pattern for everything on the address's host; None for a host that is a number or has no dot."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not _NAMED_HOST.fullmatch(found[2].lower()):
        return None
    port = f":{found[3]}" if found[3] else ""
    pattern = f"{found[1].lower()}://{found[2].lower()}{port}/*"
    return pattern if covers(parse_address(pattern), address) else None


def _host_fits(pattern: AddressPattern, host: str) -> bool:
    return host.endswith(f".{pattern.host}") if pattern.below else host == pattern.host


def _path_fits(pattern: AddressPattern, path: str) -> bool:
    if not pattern.path:
        return True
    return path.startswith(pattern.path) if pattern.more else path == pattern.path
