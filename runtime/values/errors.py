"""The one exception tree: whose fault it is, and a sentence that is safe to show.

Knows no protocol: `acp_server.wire.errors` maps these classes to JSON-RPC codes in one table.
`str(error)` is always fit for a client: no key, no header, no prompt, no traceback.
"""

from collections.abc import Mapping
from enum import StrEnum


class Fault(StrEnum):
    """Who can mend it."""

    CLIENT = "client"
    OURS = "ours"
    PROVIDER = "provider"


class WholeturnError(Exception):
    """Root of the tree. `data` holds small JSON-able facts for the wire, never a secret."""

    fault = Fault.OURS

    def __init__(self, message: str, *, data: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, object] = dict(data or {})


class InvalidRequest(WholeturnError):
    """The request makes no sense now (a call before initialize, a closed session)."""

    fault = Fault.CLIENT


class SessionBusy(InvalidRequest):
    """Another process holds the session; the message and `data` name it."""


class InvalidParams(WholeturnError):
    """A value that the method does not take."""

    fault = Fault.CLIENT


class ResourceNotFound(WholeturnError):
    """A session or file that is not there; `data` names it."""

    fault = Fault.CLIENT


class AuthRequired(WholeturnError):
    """The provider wants a valid key; the message says how to give one."""

    fault = Fault.CLIENT


class ConfigError(WholeturnError):
    """A setting that cannot be used; the message names file, line and key."""

    fault = Fault.CLIENT


class ToolError(WholeturnError):
    """A tool could not do what was asked; the text is for the model and the client."""

    fault = Fault.CLIENT


class StoreError(WholeturnError):
    """The store cannot be read or written (locked, full, read-only, corrupt)."""


class LeaseLost(StoreError):
    """Another process took the session over; what was to be written was not."""


class NoModelConfigured(WholeturnError):
    """No provider is set up; the message names the nearest thing to set."""

    fault = Fault.CLIENT


class ContextWindowExceeded(WholeturnError):
    """The request cannot fit the model's window. Both figures are tokens."""

    def __init__(self, message: str, *, estimated_tokens: int, model_context_window: int) -> None:
        super().__init__(
            message,
            data={
                "kind": "context_window_exceeded",
                "retryable": False,
                "estimated_tokens": estimated_tokens,
                "model_context_window": model_context_window,
            },
        )
        self.estimated_tokens = estimated_tokens
        self.model_context_window = model_context_window


class ProviderErrorKind(StrEnum):
    """What went wrong at the provider. The value is `data.kind` on the wire."""

    AUTH = "auth"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server_error"
    BAD_REQUEST = "bad_request"
    REFUSED = "content_policy"
    NOT_FOUND = "not_found"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    STREAM_DROPPED = "stream_dropped"
    MALFORMED = "malformed_response"


class ProviderError(WholeturnError):
    """A provider refused or failed.

    message: one sentence for a person. status: HTTP status or None. code: the provider's own
    error code or type, '' when absent. detail: the provider's message as received, capped, kept
    for overflow detection and never shown raw. retry_after: seconds, None when not stated.
    """

    fault = Fault.PROVIDER

    def __init__(
        self,
        message: str,
        *,
        kind: ProviderErrorKind,
        retryable: bool,
        status: int | None = None,
        code: str = "",
        detail: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, data={"kind": kind.value, "retryable": retryable})
        self.kind = kind
        self.retryable = retryable
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after = retry_after


def find_error(error: BaseException) -> WholeturnError | None:
    """The error itself, or the first of ours inside a group; None when there is none."""
    if isinstance(error, WholeturnError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := find_error(inner))), None)
    return None
