"""What real servers say when they refuse: each body is understood, tried again or not, and told safely."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_server.wire.errors import wire_error
from runtime.conversation.retry import retry_delay
from runtime.history.rows.overflow import is_context_overflow, stated_limit, stated_sizes
from runtime.providers.errors.body import LONGEST_WAIT, read_body, stated_wait
from runtime.providers.errors.failures import Peer, parse_retry_after, stated_failure, status_failure
from runtime.values.errors import ProviderError

TABLE = Path(__file__).parents[2] / "data" / "error_bodies.json"
ROWS: dict[str, dict[str, Any]] = {row["name"]: row for row in json.loads(TABLE.read_text("utf-8"))}
KEY, PROMPT = "sk-live-0aB1cD2eF3gH4iJ5kL6", "the garden gnome is blue"
PEER = Peer("mine", "h.test", "some-model", "MY_KEY")
AUTH_REQUIRED, INTERNAL_ERROR = -32000, -32603


def body_of(row: dict[str, Any]) -> bytes:
    """The body as it comes, with what it quotes of us."""
    body = row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])
    return str(body).replace("{KEY}", KEY).replace("{PROMPT}", PROMPT).encode()


def error_of(row: dict[str, Any], body: bytes) -> ProviderError:
    headers = row.get("headers", {})
    return status_failure(PEER, row["status"], body, parse_retry_after(headers.get("retry-after")))


@pytest.mark.parametrize("name", ROWS)
def test_what_it_is(name):
    error = error_of(ROWS[name], body_of(ROWS[name]))
    assert (error.kind, error.status) == (ROWS[name]["kind"], ROWS[name]["status"])


@pytest.mark.parametrize("name", ROWS)
def test_whether_and_when_it_is_tried_again(name):
    """With the least jitter. A first wait that nobody stated is a quarter of a second."""
    error = error_of(ROWS[name], body_of(ROWS[name]))
    assert retry_delay(error, 0, lambda: 0.0) == ROWS[name]["retry"]
    assert error.retryable or ROWS[name]["retry"] is None


@pytest.mark.parametrize("name", ROWS)
def test_whether_less_would_help(name):
    row = ROWS[name]
    error = error_of(row, body_of(row))
    assert is_context_overflow(error) is row.get("overflow", False)
    if is_context_overflow(error):
        assert stated_limit(error) == row["limit"]
        assert not error.retryable, "the same request would be refused again"


@pytest.mark.parametrize("name", ROWS)
def test_what_the_client_is_told(name):
    row = ROWS[name]
    code, message, data = wire_error(error_of(row, body_of(row)))
    assert code == (AUTH_REQUIRED if row["kind"] == "auth" else INTERNAL_ERROR)
    assert message.startswith('The provider "mine" (h.test) ')
    assert row["says"]
    assert row["says"] in message
    assert data is not None
    assert data["kind"] == row["kind"]


def quoting(value: object, quote: str, *, whole: bool) -> object:
    """The value with every text in it followed, or replaced, by the quote."""
    match value:
        case dict():
            return {name: quoting(inner, quote, whole=whole) for name, inner in value.items()}
        case list():
            return [quoting(inner, quote, whole=whole) for inner in value]
        case str():
            return quote if whole else f"{value} {quote}"
        case _:
            return value


def echoes(row: dict[str, Any]) -> Iterator[bytes]:
    """The body, and as it would be if the server quoted us anywhere in it."""
    yield body_of(row)
    for quote in (KEY, PROMPT, f"Bearer {KEY}", f'{{"error":{{"message":"{KEY}","code":"{KEY}"}}}}'):
        for whole in (False, True):
            changed = quoting(row["body"], quote, whole=whole)
            yield (changed if isinstance(changed, str) else json.dumps(changed)).encode()


@pytest.mark.parametrize("name", ROWS)
def test_no_key_and_no_prompt_is_repeated(name):
    for body in echoes(ROWS[name]):
        error = error_of(ROWS[name], body)
        told = f"{error} {error!r} {error.data} {error.args} {wire_error(error)}"
        assert KEY not in told
        assert "gnome" not in told


def test_the_table_is_large_and_knows_every_server():
    assert len(ROWS) >= 40
    makers = {name.split(":")[0] for name in ROWS}
    named = "OpenAI Anthropic Google Azure Mistral Groq OpenRouter Together vLLM Ollama xAI DeepSeek LiteLLM"
    assert makers >= {*named.split(), "llama.cpp", "LM Studio", "nginx"}


IN_STREAM = {
    "Anthropic: overloaded": "overloaded",
    "OpenAI: prompt flagged": "content_policy",
    "OpenAI: no credit": "quota",
    "llama.cpp: context": "bad_request",
    "OpenRouter: limit of the provider behind": "rate_limit",
    "Ollama: context, the error of its runner as text": "bad_request",
}


@pytest.mark.parametrize("name", IN_STREAM)
def test_the_same_error_inside_a_stream(name):
    error = stated_failure(PEER, ROWS[name]["body"]["error"])
    assert error.kind == IN_STREAM[name]
    assert is_context_overflow(error) is ROWS[name].get("overflow", False)


def test_an_output_limit_is_read_as_one():
    for name in ("OpenAI: output limit", "Anthropic: output limit"):
        sizes = stated_sizes(error_of(ROWS[name], body_of(ROWS[name])))
        assert sizes.limits_output
        assert (sizes.limit, sizes.output) == ((16384 if "OpenAI" in name else 64000), 100000)


CODES = {
    "context_length_exceeded": True,
    "RateLimitReached": True,
    "Throttling.AllocationQuota": True,
    "3051": True,
    "a" * 63 + "1": False,
    "a-" * 32: False,
    "a" * 65: False,
    "sk-live-0aB1cD2eF3": False,
    "the garden gnome": False,
    "123456": False,
    "": False,
}


@pytest.mark.parametrize("code", CODES)
def test_only_words_and_short_numbers_are_shown_as_codes(code):
    error = status_failure(PEER, 500, json.dumps({"error": {"code": code, "message": "m"}}).encode())
    assert str(error).endswith(f"(HTTP 500, {code})." if CODES[code] else "(HTTP 500).")


def test_a_provider_without_a_key_is_told_where_to_name_one():
    error = status_failure(Peer("mine"), 401, b"{}")
    assert "set providers.mine.api_key_env" in str(error)


WAITS = {
    "try again in 20s": 20,
    "Please try again in 1m30.5s.": 90.5,
    "Try again in 120ms": 0.12,
    "please retry after 26 seconds": 26,
    "Please wait 27 seconds before retrying.": 27,
    "try again after 1 second": 1,
    "It resets in 16 days.": 16 * 86400,
    "retry in 1 hour 30 minutes": 5400,
    "retry 3 times": None,
    "try again in 5 monkeys": None,
    "try again later": None,
    "wait": None,
    "": None,
    "2 seconds": None,
    "try again in " + "9" * 400 + "s": LONGEST_WAIT,
    "resets in 400000000 hours": LONGEST_WAIT,
}


@pytest.mark.parametrize("text", WAITS)
def test_waits_in_words(text):
    assert stated_wait(text) == (None if WAITS[text] is None else pytest.approx(WAITS[text]))


@pytest.mark.parametrize("stated", [b"1e30", b"99999999999999", b'"9999999999 days"'])
def test_waits_beside_the_words_are_bounded(stated):
    assert read_body(b'{"error":{"message":"busy","retry_after":' + stated + b"}}").wait == LONGEST_WAIT


@pytest.mark.parametrize(
    "body", [b"[" * 60000, b'{"error":' * 60000, b'{"error":"' + b"\\" * 60000, b"[]", b"7"]
)
def test_bodies_that_make_no_sense_are_read_all_the_same(body):
    assert not read_body(body).codes
    assert status_failure(PEER, 400, body).kind == "bad_request"
