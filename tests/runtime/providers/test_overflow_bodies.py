"""Refusals for size as servers word them, with what they state; near misses; words that no table knows."""

import json
from pathlib import Path

import orjson
import pytest

from runtime.history.rows.overflow import (
    is_context_overflow,
    may_be_too_large,
    names_other_cause,
    stated_limit,
    stated_sizes,
)
from runtime.providers.errors.failures import Peer, stated_failure, status_failure
from runtime.values.errors import ProviderError, ProviderErrorKind

PEER = Peer("mine", "h.test", "m", "KEY")
TABLE = json.loads((Path(__file__).parents[2] / "data" / "overflow_bodies.json").read_text())
OVERFLOWS, NEAR_MISSES, UNKNOWN = (
    {row["name"]: row for row in TABLE[part]} for part in ("overflows", "near_misses", "unknown_words")
)


def failure(row) -> ProviderError:
    """The error for a row, as an adapter makes it; without a status it came inside an answer."""
    if row["status"] is None:
        return stated_failure(PEER, row["body"])
    return status_failure(PEER, row["status"], orjson.dumps(row["body"]))


def test_the_table_is_large_and_says_where_each_was_seen():
    assert len(OVERFLOWS) == len(TABLE["overflows"]) >= 60
    assert all(row["source"].startswith("https://") for row in OVERFLOWS.values())
    assert len({json.dumps(row["body"]) for row in OVERFLOWS.values()}) == len(OVERFLOWS)


@pytest.mark.parametrize("name", OVERFLOWS)
def test_it_is_known_as_one(name):
    error = failure(OVERFLOWS[name])
    assert is_context_overflow(error)
    assert not may_be_too_large(error), "what is known need not be guessed"
    assert not error.retryable, "the same request would be refused again"
    assert "too long for the model" in str(error) or "too large" in str(error)


@pytest.mark.parametrize("name", OVERFLOWS)
def test_what_it_states(name):
    row, sizes = OVERFLOWS[name], stated_sizes(failure(OVERFLOWS[name]))
    assert stated_limit(failure(row)) == row["limit"]
    assert sizes.requested == row["requested"]
    assert sizes.blames_output is row.get("output", False)


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_stays_what_it_is(name):
    """A limit on the answer alone is mended by a shorter answer; no turn goes for it."""
    row, error = NEAR_MISSES[name], failure(NEAR_MISSES[name])
    assert is_context_overflow(error) is row.get("output", False)
    assert stated_sizes(error).limits_output is row.get("output", False)
    assert not may_be_too_large(error)
    assert row.get("output", False) or names_other_cause(error)


@pytest.mark.parametrize("name", UNKNOWN)
def test_words_that_no_table_knows_are_perhaps_one(name):
    error = failure(UNKNOWN[name])
    assert not is_context_overflow(error)
    assert may_be_too_large(error)


@pytest.mark.parametrize("status", [401, 404, 409, 429, 502, 503, None])
def test_only_a_refusal_of_the_request_is_perhaps_one(status):
    error = ProviderError(
        "no",
        kind=ProviderErrorKind.BAD_REQUEST,
        retryable=False,
        status=status,
        detail="5000 tokens, not 4096",
    )
    assert not may_be_too_large(error)


@pytest.mark.parametrize("digits", ["9" * 4000, "9" * 4000 + "k", "1" + ",000" * 900])
def test_figures_without_end_are_read(digits):
    error = failure(
        {"status": 400, "body": {"error": f"{digits} tokens > 4096 maximum, prompt has {digits} tokens"}}
    )
    assert stated_sizes(error).requested == 10**12
    assert is_context_overflow(error)
