"""What sets the HTTP kinds apart: addresses, keys, options, and what they make of refusals."""

import json

import httpx2
import pytest

from runtime.history.rows.overflow import is_context_overflow, stated_limit
from runtime.providers import catalog
from runtime.providers.anthropic import provider as anthropic_settings
from runtime.providers.anthropic.provider import AnthropicProvider
from runtime.providers.http.client import HttpProvider
from runtime.providers.openai_chat.provider import OpenAIProvider
from runtime.providers.openai_responses import provider as responses_settings
from runtime.providers.openai_responses.provider import ResponsesProvider
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ConfigError, ProviderError, ProviderErrorKind
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Row

Kind = ProviderErrorKind
REQUEST = ModelRequest("m", (Segment((Row("user", "secret prompt"),)),))
SECRET = "sk-very-secret"
PROVIDERS: dict[str, type[HttpProvider]] = {
    "openai": OpenAIProvider,
    "openai_responses": ResponsesProvider,
    "anthropic": AnthropicProvider,
}

ADDRESSES = [
    ("anthropic", "", "https://api.anthropic.com/v1/messages", "api.anthropic.com"),
    (
        "anthropic",
        "https://api.anthropic.com/v1/",
        "https://api.anthropic.com/v1/messages",
        "api.anthropic.com",
    ),
    ("anthropic", "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/messages", "127.0.0.1:8080"),
    ("anthropic", "https://g.test/anthropic/messages", "https://g.test/anthropic/messages", "g.test"),
    ("openai_responses", "", "https://api.openai.com/v1/responses", "api.openai.com"),
    ("openai_responses", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/responses", "127.0.0.1:8080"),
    ("openai_responses", "https://g.test/responses", "https://g.test/responses", "g.test"),
]


@pytest.mark.parametrize(("kind", "base_url", "url", "host"), ADDRESSES)
def test_addresses(kind, base_url, url, host):
    module = anthropic_settings if kind == "anthropic" else responses_settings
    made = module.endpoint_of(ProviderSettings("mine", kind, base_url))
    assert (made.url, made.host) == (url, host)


WRONG = [
    ("anthropic", {"thinking_budget": 1000}, "at least 1024"),
    ("anthropic", {"thinking_budget": True}, "whole number"),
    ("anthropic", {"max_tokens": 0}, "at least 1"),
    ("anthropic", {"max_tokens": 1.5}, "whole number"),
    ("anthropic", {"prompt_cache": "yes"}, "true or false"),
    ("anthropic", {"extra_body": {"system": "x"}}, "may not set system"),
    ("anthropic", {"thinking_budget": 1024, "extra_body": {"thinking": {}}}, "exclude each other"),
    ("anthropic", {"thinking_buget": 1024}, 'mean "thinking_budget"'),
    ("openai_responses", {"encrypted_reasoning": 1}, "true or false"),
    ("openai_responses", {"extra_body": {"store": True}}, "may not set store"),
    ("openai_responses", {"stream_usage": True}, "no option of kind"),
]


@pytest.mark.parametrize(("kind", "options", "says"), WRONG)
def test_wrong_options_are_named(kind, options, says):
    settings = ProviderSettings("mine", kind, options=options, source="config.toml, line 7")
    with pytest.raises(ConfigError, match=says) as caught:
        catalog.create(settings)
    assert "providers.mine." in str(caught.value)
    assert "config.toml, line 7" in str(caught.value)


async def test_options_that_are_taken():
    options = {"max_tokens": 100, "thinking_budget": 1024, "prompt_cache": False, "idle_timeout": 5}
    shape = anthropic_settings.shape(ProviderSettings("mine", "anthropic", options=options))
    assert (shape.max_tokens, shape.thinking_budget, shape.prompt_cache) == (100, 1024, False)
    told = ProviderSettings("mine", "openai_responses", options={"encrypted_reasoning": False})
    assert responses_settings.shape(told).encrypted_reasoning is False
    assert (
        anthropic_settings.endpoint_of(ProviderSettings("m", "anthropic", options=options)).idle_seconds == 5
    )


def over(kind: str, handler) -> HttpProvider:
    settings = ProviderSettings("mine", kind, "http://host.test/v1", api_key_env="KEY")
    transport = httpx2.MockTransport(handler)
    return PROVIDERS[kind](settings, transport=transport, environ={"KEY": SECRET})


async def failure_of(
    kind: str, status: int, body: object, **headers: str
) -> tuple[ProviderError, httpx2.Request]:
    asked: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.Response(status, content=json.dumps(body).encode(), headers=named)

    model = over(kind, handler)
    with pytest.raises(ProviderError) as caught:
        async with model.stream(REQUEST):
            pass
    await model.aclose()
    return caught.value, asked[0]


KEY_HEADERS = {
    "openai": ("authorization", f"Bearer {SECRET}"),
    "openai_responses": ("authorization", f"Bearer {SECRET}"),
    "anthropic": ("x-api-key", SECRET),
}


@pytest.mark.parametrize("kind", KEY_HEADERS)
async def test_the_key_goes_out_in_one_header_and_nowhere_else(kind):
    error, asked = await failure_of(kind, 400, {"error": {"message": f"you sent {SECRET}: secret prompt"}})
    header, value = KEY_HEADERS[kind]
    assert asked.headers[header] == value
    assert [name for name in asked.headers if SECRET in asked.headers[name]] == [header]
    assert SECRET not in str(error) + repr(error.data) + str(asked.url)
    assert "secret prompt" not in str(error)
    assert asked.headers.get("anthropic-version") == ("2023-06-01" if kind == "anthropic" else None)


def anthropic(code: str, message: str = "m") -> dict[str, object]:
    return {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_1"}


def openai(code: str | None, message: str = "m") -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


REFUSALS = [
    ("anthropic", 400, anthropic("invalid_request_error"), Kind.BAD_REQUEST, False),
    ("anthropic", 401, anthropic("authentication_error", "invalid x-api-key"), Kind.AUTH, False),
    ("anthropic", 402, anthropic("billing_error"), Kind.QUOTA, False),
    ("anthropic", 403, anthropic("permission_error"), Kind.AUTH, False),
    ("anthropic", 404, anthropic("not_found_error", "model: x"), Kind.NOT_FOUND, False),
    ("anthropic", 413, anthropic("request_too_large"), Kind.BAD_REQUEST, False),
    ("anthropic", 429, anthropic("rate_limit_error"), Kind.RATE_LIMIT, True),
    ("anthropic", 500, anthropic("api_error"), Kind.SERVER, True),
    ("anthropic", 504, anthropic("timeout_error"), Kind.TIMEOUT, True),
    ("anthropic", 529, anthropic("overloaded_error"), Kind.OVERLOADED, True),
    ("openai_responses", 400, openai("unsupported_parameter"), Kind.BAD_REQUEST, False),
    ("openai_responses", 401, openai("invalid_api_key"), Kind.AUTH, False),
    ("openai_responses", 404, openai("model_not_found"), Kind.NOT_FOUND, False),
    ("openai_responses", 429, openai("insufficient_quota"), Kind.QUOTA, False),
    ("openai_responses", 429, openai("rate_limit_exceeded"), Kind.RATE_LIMIT, True),
    ("openai_responses", 503, openai(None), Kind.OVERLOADED, True),
]


@pytest.mark.parametrize(("kind", "status", "body", "fault", "retryable"), REFUSALS)
async def test_refusals(kind, status, body, fault, retryable, autojump_clock):
    error, _ = await failure_of(kind, status, body)
    assert (error.kind, error.retryable, error.status) == (fault, retryable, status)


OVERFLOWS = [
    (
        "anthropic",
        400,
        anthropic("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
        200000,
    ),
    ("anthropic", 413, anthropic("request_too_large", "Request exceeds the maximum size"), None),
    (
        "openai_responses",
        400,
        openai("context_length_exceeded", "Your input exceeds the context window of this model."),
        None,
    ),
]


@pytest.mark.parametrize(("kind", "status", "body", "limit"), OVERFLOWS)
async def test_overflows_are_told_from_other_refusals(kind, status, body, limit):
    error, _ = await failure_of(kind, status, body)
    assert is_context_overflow(error)
    assert stated_limit(error) == limit


async def test_a_stated_wait_is_kept():
    error, _ = await failure_of("anthropic", 429, anthropic("rate_limit_error"), retry_after="3600")
    assert error.retry_after == 3600
    assert "3600 s" in str(error)
