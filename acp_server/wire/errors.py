"""Our errors as JSON-RPC errors: the codes, and the one table that assigns them. Knows no transport.

Codes are those of JSON-RPC 2.0 and of ACP v1. -32000 means "authentication required" and nothing else.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from runtime.values.errors import (
    AuthRequired,
    Fault,
    InvalidParams,
    InvalidRequest,
    ProviderError,
    ProviderErrorKind,
    ResourceNotFound,
    WholeturnError,
    find_error,
)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
AUTH_REQUIRED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002


class WireError(NamedTuple):
    """A JSON-RPC error object. `data` is left out of the message when it is None or empty."""

    code: int
    message: str
    data: Mapping[str, object] | None = None


class GivenUp(WholeturnError):
    """The request was stopped before it came to anything."""

    fault = Fault.CLIENT


class NotOffered(WholeturnError):
    """A method that exists and was not advertised to this client: for it there is none."""

    fault = Fault.CLIENT


INTERNAL: Final = WireError(INTERNAL_ERROR, "Internal error")
CANCELLED: Final = WireError(REQUEST_CANCELLED, "Request cancelled")

# The first class that fits wins. Their messages are safe to show, by the promise of `runtime.values.errors`.
CODES: Final[tuple[tuple[type[WholeturnError], int], ...]] = (
    (NotOffered, METHOD_NOT_FOUND),
    (GivenUp, REQUEST_CANCELLED),
    (InvalidRequest, INVALID_REQUEST),
    (InvalidParams, INVALID_PARAMS),
    (ResourceNotFound, RESOURCE_NOT_FOUND),
    (AuthRequired, AUTH_REQUIRED),
    (WholeturnError, INTERNAL_ERROR),
)


class ClientCallError(Exception):
    """A request of ours that the client refused or can no longer answer. code: as the client sent it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


def wire_error(error: BaseException) -> WireError:
    """What the client is told. Of an error that is not ours it learns nothing but that it happened."""
    known = find_error(error)
    if known is None:
        return INTERNAL
    return WireError(_code(known), known.message, known.data or None)


def _code(error: WholeturnError) -> int:
    if isinstance(error, ProviderError) and error.kind is ProviderErrorKind.AUTH:
        return AUTH_REQUIRED
    return next(code for kind, code in CODES if isinstance(error, kind))
