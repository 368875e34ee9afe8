"""Settings become providers, and settings that cannot are named; nothing heavy loads before its time."""

import subprocess
import sys
import time
from email.utils import formatdate

import pytest

from runtime.providers import catalog
from runtime.providers.errors.body import LONGEST_WAIT
from runtime.providers.errors.failures import Peer, parse_retry_after, stated_failure, status_failure
from runtime.providers.openai_chat.provider import endpoint_of, shape
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ConfigError, ProviderErrorKind


def openai(**more) -> ProviderSettings:
    return ProviderSettings("mine", "openai", source="config.toml, line 7", **more)


@pytest.mark.parametrize("kind", catalog.KINDS)
def test_warming(kind):
    catalog.warm(kind)


async def test_create(tmp_path):
    script = tmp_path / "s.yaml"
    script.write_text("[{text: hi}]")
    made = [
        catalog.create(openai(base_url="http://127.0.0.1:1/v1")),
        catalog.create(ProviderSettings("mine", "scripted", options={"script": str(script)})),
    ]
    assert [provider.name for provider in made] == ["mine", "mine"]
    for provider in made:
        await provider.aclose()


def test_unknown_kind():
    with pytest.raises(ConfigError, match=r'providers\.x\.kind.*"opnai".*mean "openai"'):
        catalog.create(ProviderSettings("x", "opnai"))


def test_the_catalog_loads_nothing_heavy():
    code = (
        "import sys, runtime.providers.catalog, runtime.providers.detect\n"
        "print([m for m in ('httpx2', 'httpcore2', 'yaml', 'pydantic', 'ssl') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() in ("[]", "['ssl']")  # trio itself takes ssl


ENDPOINTS = {
    "": ("https://api.openai.com/v1/chat/completions", "api.openai.com", "max_completion_tokens"),
    "http://127.0.0.1:8000/v1/": (
        "http://127.0.0.1:8000/v1/chat/completions",
        "127.0.0.1:8000",
        "max_tokens",
    ),
    "https://u:pw@h.test/chat/completions": (
        "https://u:pw@h.test/chat/completions",
        "h.test",
        "max_tokens",
    ),
    "http://[::1]:9/v1": ("http://[::1]:9/v1/chat/completions", "[::1]:9", "max_tokens"),
}


@pytest.mark.parametrize("base_url", ENDPOINTS)
def test_endpoints(base_url):
    settings = openai(base_url=base_url)
    made = endpoint_of(settings)
    assert (made.url, made.host, shape(settings).output_limit_key) == ENDPOINTS[base_url]


WRONG = [
    ({"base_url": "127.0.0.1:8000"}, "base_url"),
    ({"base_url": "ftp://h/v1"}, "base_url"),
    ({"base_url": "http://h:port/v1"}, "base_url"),
    ({"headers": {"X-Ü": "a"}}, "headers"),
    ({"headers": {"X-A": "a\r\nb"}}, "headers"),
    ({"headers": {"X A": "a"}}, "headers"),
    ({"options": {"output_limit_key": "tokens"}}, "output_limit_key"),
    ({"options": {"stream_usage": "yes"}}, "stream_usage"),
    ({"options": {"idle_timeout": 0}}, "idle_timeout"),
    ({"options": {"idle_timeout": True}}, "idle_timeout"),
    ({"options": {"extra_body": [1]}}, "extra_body"),
    ({"options": {"extra_body": {"messages": []}}}, "messages"),
    ({"options": {"strem_usage": True}}, 'mean "stream_usage"'),
]


@pytest.mark.parametrize(("fields", "named"), WRONG)
def test_wrong_settings_are_named(fields, named):
    with pytest.raises(ConfigError, match=named) as caught:
        catalog.create(openai(**fields))
    assert "providers.mine." in str(caught.value)
    assert "config.toml, line 7" in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "milliseconds", "wanted"),
    [
        (None, None, None),
        ("3", None, 3.0),
        (" 1.5 ", None, 1.5),
        ("3", "250", 0.25),
        ("nonsense", None, None),
        ("-1", None, None),
        ("9" * 400, None, LONGEST_WAIT),
        ("31556952000", None, LONGEST_WAIT),
        (None, "9" * 20, LONGEST_WAIT),
        ("Fri, 01 Jan 3025 00:00:00 GMT", None, LONGEST_WAIT),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None, LONGEST_WAIT),
        ("Fri, 01 Jan 30250 00:00:00 GMT", None, None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None, 0.0),
    ],
)
def test_retry_after(seconds, milliseconds, wanted):
    assert parse_retry_after(seconds, milliseconds) == wanted


def test_retry_after_as_a_date():
    wait = parse_retry_after(formatdate(time.time() + 100, usegmt=True))
    assert wait is not None
    assert 0 < wait <= 100


def test_a_wait_of_a_thousand_years_is_bounded_and_told():
    error = status_failure(PEER, 429, b"", parse_retry_after("Fri, 01 Jan 3025 00:00:00 GMT"))
    assert error.retry_after == LONGEST_WAIT
    assert "it asks to wait a month or more" in str(error)


PEER = Peer("mine", "h.test", "m", "KEY")
LLAMACPP = (
    b'{"error":{"code":400,"message":"request (5031 tokens) exceeds the available context size '
    b'(2048 tokens)","type":"exceed_context_size_error","n_prompt_tokens":5031,"n_ctx":2048}}'
)
BODIES = {
    b"": ("", ""),
    b"plain words": ("", "plain words"),
    b'{"error":"just text"}': ("", "just text"),
    b'{"error":{"message":"m","type":"t","code":null}}': ("t", "m"),
    b'{"error":{"message":"m","type":"t","code":"c"}}': ("c", "m"),
    b'[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]': ("RESOURCE_EXHAUSTED", "m"),
    b'{"detail":"Not Found"}': ("", "Not Found"),
    b'{"detail":[{"loc":["a"]}]}': ("", '{"detail":[{"loc":["a"]}]}'),
    b'{"object":"error","message":"m","type":"BadRequestError","code":400}': ("BadRequestError", "m"),
    LLAMACPP: (
        "exceed_context_size_error",
        "request (5031 tokens) exceeds the available context size (2048 tokens)",
    ),
}


@pytest.mark.parametrize("body", BODIES)
def test_error_bodies(body):
    error = status_failure(PEER, 400, body)
    assert (error.code, error.detail) == BODIES[body]


def test_details_are_capped_and_codes_that_are_text_are_not_shown():
    error = status_failure(
        PEER, 400, b'{"error":{"message":"%b","code":"the prompt said: hi"}}' % (b"x" * 9000)
    )
    assert len(error.detail) == 4096
    assert "prompt said" not in str(error)
    assert str(error) == 'The provider "mine" (h.test) refused the request (HTTP 400).'


def test_a_number_as_code_in_a_stream_is_its_status():
    assert stated_failure(PEER, {"code": 429, "message": "m"}).kind is ProviderErrorKind.RATE_LIMIT
    assert stated_failure(PEER, {"code": 7, "message": "m"}).kind is ProviderErrorKind.SERVER
