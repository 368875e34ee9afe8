"""Errors: the code and the facts that the client gets for each kind."""

import pytest

from acp_server.wire.errors import INTERNAL, WireError, wire_error
from runtime.values.errors import (
    AuthRequired,
    ConfigError,
    ContextWindowExceeded,
    InvalidParams,
    InvalidRequest,
    NoModelConfigured,
    ProviderError,
    ProviderErrorKind,
    ResourceNotFound,
    StoreError,
    ToolError,
    WholeturnError,
)


def provider(kind: ProviderErrorKind, *, retryable: bool) -> ProviderError:
    return ProviderError("It failed.", kind=kind, retryable=retryable, detail="secret detail")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidRequest("no"), WireError(-32600, "no")),
        (InvalidParams("no"), WireError(-32602, "no")),
        (ResourceNotFound("no", data={"sessionId": "s"}), WireError(-32002, "no", {"sessionId": "s"})),
        (AuthRequired("key"), WireError(-32000, "key")),
        (
            provider(ProviderErrorKind.AUTH, retryable=False),
            WireError(-32000, "It failed.", {"kind": "auth", "retryable": False}),
        ),
        (StoreError("full"), WireError(-32603, "full")),
        (ToolError("t"), WireError(-32603, "t")),
        (ConfigError("c"), WireError(-32603, "c")),
        (NoModelConfigured("m"), WireError(-32603, "m")),
        (WholeturnError("w"), WireError(-32603, "w")),
        (KeyError("/home/me/.key"), INTERNAL),
        (
            ExceptionGroup("g", [ValueError("/x"), ExceptionGroup("h", [InvalidParams("no")])]),
            WireError(-32602, "no"),
        ),
        (ExceptionGroup("/home/me", [ValueError("/x")]), INTERNAL),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_table(error: Exception, expected: WireError) -> None:
    assert wire_error(error) == expected


@pytest.mark.parametrize("kind", [kind for kind in ProviderErrorKind if kind is not ProviderErrorKind.AUTH])
def test_only_a_missing_key_means_authentication(kind: ProviderErrorKind) -> None:
    expected = WireError(-32603, "It failed.", {"kind": kind.value, "retryable": True})
    assert wire_error(provider(kind, retryable=True)) == expected


def test_a_full_window_tells_its_figures() -> None:
    error = ContextWindowExceeded("too long", estimated_tokens=10, model_context_window=5)
    code, message, data = wire_error(error)
    assert (code, message) == (-32603, "too long")
    assert data is not None
    assert (data["estimated_tokens"], data["model_context_window"]) == (10, 5)
