"""What sections of all HTTP kinds have in common, checked: pure. Knows no API and no HTTP client."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from runtime.providers.settings import ProviderSettings, check_options
from schemas.version import __version__

IDLE_SECONDS = 120.0

Check = Callable[[ProviderSettings, str, object], object]
"""Gives an option's value back or raises ConfigError."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how to ask. host: with the port when it is stated, never with user or password."""

    url: str
    host: str
    idle_seconds: float = IDLE_SECONDS
    headers: Mapping[str, str] = field(default_factory=dict)


def endpoint(
    settings: ProviderSettings, default: str, path: Callable[[str], str], **headers: str
) -> Endpoint:
    """The endpoint of a section. path: from the base URL to what stands behind it. Raises ConfigError.

    headers: more of the kind's own, `_` for `-`; the section's stand above them.
    """
    base_url = (settings.base_url or default).rstrip("/")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    idle = settings.options.get("idle_timeout")
    return Endpoint(
        url=base_url + path(base_url),
        host=_host(settings, base_url),
        idle_seconds=float(idle) if isinstance(idle, int | float) else IDLE_SECONDS,
        headers=_headers(settings, named),
    )


def behind(base_url: str, path: str) -> str:
    """The path, or nothing when the base URL names it already."""
    return "" if base_url.endswith(path) else path


def chosen(settings: ProviderSettings, checks: Mapping[str, Check]) -> dict[str, object]:
    """The section's options, checked. Raises ConfigError that names the key."""
    check_options(settings, checks)
    return {name: checks[name](settings, name, value) for name, value in settings.options.items()}


def _host(settings: ProviderSettings, base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise settings.problem("base_url", 'must look like "https://host/v1" or "http://127.0.0.1:8000/v1"')
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}" if port else name


def _headers(settings: ProviderSettings, named: Mapping[str, str]) -> dict[str, str]:
    for name, value in settings.headers.items():
        plain = name.isascii() and value.isascii() and value.isprintable()
        if not plain or not name.replace("-", "").replace("_", "").isalnum():
            raise settings.problem("headers", f'has an entry that cannot be sent: "{name}"')
    own = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"wholeturn/{__version__}",
        **named,
    }
    given = {name.lower() for name in settings.headers}
    return {**{k: v for k, v in own.items() if k.lower() not in given}, **settings.headers}


def flag(settings: ProviderSettings, name: str, value: object) -> object:
    """true or false."""
    if not isinstance(value, bool):
        raise settings.problem(name, "must be true or false")
    return value


def seconds(settings: ProviderSettings, name: str, value: object) -> object:
    """A time above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise settings.problem(name, "must be a number of seconds above 0")
    return value


def tokens(least: int) -> Check:
    """A whole number of tokens, at least that many."""

    def check(settings: ProviderSettings, name: str, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise settings.problem(name, f"must be a whole number of tokens, at least {least}")
        return value

    return check


def members(taken: Collection[str]) -> Check:
    """A table of members of the request's body, none of these."""

    def check(settings: ProviderSettings, name: str, value: object) -> object:
        if not isinstance(value, Mapping):
            raise settings.problem(name, "must be a table of request members")
        own = sorted(set(taken) & set(value))
        if own:
            raise settings.problem(name, f"may not set {', '.join(own)}")
        return value

    return check


def as_table(value: object) -> Mapping[str, object] | None:
    """A checked table, None when the option is absent."""
    return value if isinstance(value, Mapping) else None
