"""The shape of every answer that is not what was asked for: `{"error": {"status": …, "message": …}}`.

Knows no route. A message is one sentence and holds nothing of what was sent.
"""

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer to a request that is refused, or could not be served."""
    body = {"error": {"status": status, "message": message}}
    return JSONResponse(body, status, headers=dict(headers or {}))


async def refused(request: HTTPConnection, error: Exception) -> Response:
    """A starlette handler for what routes raise: HTTPException with its status, all else as 500."""
    if isinstance(error, HTTPException):
        return refusal(error.status_code, error.detail, error.headers)
    return refusal(500, "Something went wrong inside the gateway; its log has the details.")
