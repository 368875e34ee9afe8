"""The tables of provider errors: which are overflows, and which sizes they state."""

import pytest

from runtime.history.rows.overflow import is_context_overflow, stated_limit, stated_sizes
from tests.runtime.history.helpers import refusal

OPENAI = (
    "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens "
    "(6000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion."
)
STATED = [
    (OPENAI, 8192, 10000),
    ("request (8968 tokens) exceeds the available context size (8448 tokens)", 8448, 8968),
    ("prompt is too long: 210,000 tokens > 200,000 maximum", 200_000, 210_000),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
        1200000,
    ),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096, 5000),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812),
    ("prompt token count of 67364 exceeds the limit of 64000", 64000, 67364),
    ("tokens per minute (TPM): Limit 6000, Requested 7000", 6000, 7000),
    ("Limit 10000, Used 9500, Requested 700 tokens", 10000, 700),
    ("TPM tokens Limit: 30,000; Requested: 45,000", 30_000, 45_000),
    ("Requested tokens (4353) exceed context window of 2048", 2048, 4353),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        272000,
        300000,
    ),
    ("your prompt is 5000 tokens, but the limit is 4096 tokens", 4096, 5000),
    ("maximum context length of 32k tokens", 32_000, None),
    ("maximum context length is 8192.", 8192, None),
    ("Your input exceeds the context window of this model", None, None),
    ('{"message":"too long","n_prompt_tokens":8968,"n_ctx":8448} prompt', 8448, 8968),
    ("image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes", None, None),
    ("Invalid value at line 300 > 256", None, None),
]


@pytest.mark.parametrize(("text", "limit", "requested"), STATED)
def test_sizes_are_read(text, limit, requested):
    sizes = stated_sizes(text)
    assert (sizes.limit, sizes.requested) == (limit, requested)


OUTPUT = [
    (OPENAI, True, 8192),
    (OPENAI.replace("6000", "9000").replace("10000", "13000"), False, 8192),
    ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", True, 200000),
    ("max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for m", True, None),
    ("max_tokens is too large: 9000. This model supports at most 4096 completion tokens", True, None),
    (
        "'max_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your "
        "request has 5000 input tokens (4096 > 8192 - 5000).",
        True,
        8192,
    ),
]


@pytest.mark.parametrize(("text", "blamed", "window"), OUTPUT)
def test_the_answer_is_blamed_only_when_the_messages_fit(text, blamed, window):
    assert stated_sizes(text).blames_output is blamed
    assert stated_limit(text) == window


VERDICTS = [
    ("tokens per minute (TPM): Limit 6000, Requested 7000", 429, "rate_limit_exceeded", True),
    ("tokens per min (TPM): Limit 10000, Used 9500, Requested 700", 429, "rate_limit_exceeded", False),
    ("your prompt is too long", 429, "", False),
    ("nginx", 413, "", True),
    ("too many tokens per minute", 413, "", False),
    ("bad request", 400, "context_length_exceeded", True),
    ("bad request", 400, "exceed_context_size_error", True),
    ("too many tokens; quota used up", 400, "", False),
    ("Payload Too Large", None, "", True),
    ("the model is overloaded", 529, "overloaded_error", False),
    (OPENAI, 400, "", True),
    ("max_tokens is too large: 9000. This model supports at most 4096 completion tokens", 400, "", True),
]


@pytest.mark.parametrize(("text", "status", "code", "verdict"), VERDICTS)
def test_status_and_code_count(text, status, code, verdict):
    assert is_context_overflow(refusal(text, status, code)) is verdict
