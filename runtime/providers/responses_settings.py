"""What a `kind = "openai_responses"` section means, checked once: pure. Knows no HTTP client."""

from collections.abc import Mapping

from runtime.providers.http_settings import (
    Check,
    Endpoint,
    as_table,
    behind,
    chosen,
    flag,
    members,
    seconds,
)
from runtime.providers.http_settings import endpoint as http_endpoint
from runtime.providers.responses_request import OWN_MEMBERS, BodyShape
from runtime.providers.settings import ProviderSettings

DEFAULT_BASE_URL = "https://api.openai.com/v1"


def endpoint(settings: ProviderSettings) -> Endpoint:
    """Where to ask. Raises ConfigError that names the key."""
    return http_endpoint(settings, DEFAULT_BASE_URL, lambda base_url: behind(base_url, "/responses"))


def shape(settings: ProviderSettings) -> BodyShape:
    """What the options say of the body. Raises ConfigError that names the key."""
    options = chosen(settings, OPTIONS)
    encrypted = options.get("encrypted_reasoning")
    return BodyShape(
        encrypted_reasoning=encrypted if isinstance(encrypted, bool) else None,
        extra=as_table(options.get("extra_body")),
    )


OPTIONS: Mapping[str, Check] = {
    "encrypted_reasoning": flag,
    "idle_timeout": seconds,
    "extra_body": members(OWN_MEMBERS),
}
