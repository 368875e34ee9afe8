"""What a `kind = "openai"` section means, checked once: pure. Knows no HTTP client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from runtime.providers.openai_request import OWN_MEMBERS, BodyShape
from runtime.providers.settings import ProviderSettings, check_options
from schemas.version import __version__

DEFAULT_BASE_URL = "https://api.openai.com/v1"
IDLE_SECONDS = 120.0
LIMIT_KEYS = ("max_tokens", "max_completion_tokens")
_NEW_LIMIT_KEY_HOSTS = ("api.openai.com",)
"""Its newer models refuse `max_tokens`; nearly every other server knows only that."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how to ask. host: with the port when it is stated, never with user or password."""

    url: str
    host: str
    shape: BodyShape
    idle_seconds: float = IDLE_SECONDS
    headers: Mapping[str, str] = field(default_factory=dict)


def endpoint(settings: ProviderSettings) -> Endpoint:
    """Raises ConfigError that names the key."""
    check_options(settings, OPTIONS)
    base_url = (settings.base_url or DEFAULT_BASE_URL).rstrip("/")
    host = _host(settings, base_url)
    chosen = {name: OPTIONS[name](settings, name, value) for name, value in settings.options.items()}
    default_key = LIMIT_KEYS[host in _NEW_LIMIT_KEY_HOSTS]
    suffix = "" if base_url.endswith("/chat/completions") else "/chat/completions"
    return Endpoint(
        url=base_url + suffix,
        host=host,
        shape=BodyShape(
            output_limit_key=str(chosen.get("output_limit_key", default_key)),
            stream_usage=bool(chosen.get("stream_usage", True)),
            extra=_members(chosen.get("extra_body")),
        ),
        idle_seconds=_seconds(chosen.get("idle_timeout", IDLE_SECONDS)),
        headers=_headers(settings),
    )


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


def _headers(settings: ProviderSettings) -> dict[str, str]:
    for name, value in settings.headers.items():
        plain = name.isascii() and value.isascii() and value.isprintable()
        if not plain or not name.replace("-", "").replace("_", "").isalnum():
            raise settings.problem("headers", f'has an entry that cannot be sent: "{name}"')
    own = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"wholeturn/{__version__}",
    }
    return {**own, **settings.headers}


def _limit_key(settings: ProviderSettings, name: str, value: object) -> object:
    if value not in LIMIT_KEYS:
        raise settings.problem(name, f"must be one of {', '.join(LIMIT_KEYS)}")
    return value


def _flag(settings: ProviderSettings, name: str, value: object) -> object:
    if not isinstance(value, bool):
        raise settings.problem(name, "must be true or false")
    return value


def _positive(settings: ProviderSettings, name: str, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise settings.problem(name, "must be a number of seconds above 0")
    return value


def _extra(settings: ProviderSettings, name: str, value: object) -> object:
    if not isinstance(value, Mapping):
        raise settings.problem(name, "must be a table of request members")
    taken = sorted(OWN_MEMBERS & set(value))
    if taken:
        raise settings.problem(name, f"may not set {', '.join(taken)}")
    return value


def _members(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) else None


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else IDLE_SECONDS


OPTIONS: Mapping[str, Callable[[ProviderSettings, str, object], object]] = {
    "output_limit_key": _limit_key,
    "stream_usage": _flag,
    "idle_timeout": _positive,
    "extra_body": _extra,
}
"""Option -> check; each check gives the value back or raises ConfigError."""
