"""A request or notification to its handler's outcome, and an outcome to a response.

The only file that knows jsonrpcserver. Knows neither tasks nor streams. A handler is a plain function
that decides at once, in the order of arrival; what may block it hands back as `Later`.
"""

import importlib.util
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast

from acp_server.wire.errors import INVALID_REQUEST, METHOD_NOT_FOUND, WireError, wire_error
from acp_server.wire.messages import Garbage, Id, Params, wire_id
from runtime.values.errors import InvalidParams, find_error

logger = logging.getLogger("wholeturn.dispatch")


def _register_unexecuted(package: str) -> None:
    """Let submodules be imported without the package's own imports: a schema validator, a web server."""
    spec = importlib.util.find_spec(package) if package not in sys.modules else None
    if spec is not None:
        sys.modules[package] = importlib.util.module_from_spec(spec)


_register_unexecuted("oslash")
_register_unexecuted("jsonrpcserver")

from jsonrpcserver.dispatcher import get_method, to_response  # noqa: E402
from jsonrpcserver.request import Request as RpcRequest  # noqa: E402
from jsonrpcserver.response import to_serializable_one  # noqa: E402
from jsonrpcserver.result import Error, Success  # noqa: E402
from jsonrpcserver.sentinels import NODATA  # noqa: E402
from oslash.either import Left  # noqa: E402

Then = Callable[[], Awaitable[None]]
Response = dict[str, object]


class Answer(NamedTuple):
    """A result that is known at once. then: runs in a task of its own after the response was queued.

    methods: with `initialize`, those that are answered from now on; None when they stay as they are.
    """

    result: object
    then: Then | None = None
    methods: "Mapping[str, Handler[Any]] | None" = None


class Later(NamedTuple):
    """Work that gives the result (or raises). then: runs after the response was queued, in the same task.

    cancel: called when the client gives the request up, and when the connection ends; the work then
    ends by itself, with a result. Without it the work is cancelled and an error is the answer.
    bind: gets, before the work begins, the function that answers at once; what the work gives after that is
    told to nobody.
    """

    run: Callable[[], Awaitable[object]]
    then: Then | None = None
    cancel: Callable[[], None] | None = None
    bind: Callable[[Callable[[object], None]], None] | None = None


class Failure(NamedTuple):
    """An outcome that is an error."""

    error: WireError


Outcome = Answer | Failure
AppT = TypeVar("AppT")
Handler = Callable[[AppT, Mapping[str, object]], Answer | Later | None]
"""Gets the app and the parameters as decoded ({} when absent); raises errors of `runtime.values.errors`.

None is for notifications; as the outcome of a request it is an empty result.
"""

_NOT_FOUND: Final = Failure(WireError(METHOD_NOT_FOUND, "Method not found"))


def start(
    methods: Mapping[str, Handler[AppT]], app: AppT, method: str, params: Params
) -> Answer | Later | Failure:
    """Call the handler. Never raises an Exception: it becomes the Failure that the client may see."""
    found = get_method(cast("dict[str, Any]", methods), method)
    if isinstance(found, Left):
        return _NOT_FOUND
    handler: Handler[AppT] = found._value
    try:
        return handler(app, _named(params)) or Answer({})
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is told by the table of errors
        return failed(method, error)


async def finish(method: str, later: Later) -> Outcome:
    """Do the work. Exceptions become a Failure; a cancellation passes through."""
    try:
        return Answer(await later.run(), later.then)
    except Exception as error:  # noqa: BLE001 - the same for its work
        return failed(method, error)
    except BaseExceptionGroup as group:
        # A cancellation came together with errors, which are told here and go no further.
        errors, rest = group.split(Exception)
        if rest is None:
            raise
        if errors is not None:
            failed(method, errors)
        raise rest from None


def failed(method: str, error: Exception) -> Failure:
    """The client's view of an exception; a bug goes to the log with its traceback."""
    if find_error(error) is None:
        logger.error("%s failed", method, exc_info=error)
    else:
        logger.info("%s refused: %s", method, find_error(error))
    return Failure(wire_error(error))


def response(request_id: Id, outcome: Outcome) -> Response:
    """The response message of a request, for `messages.encode_response`."""
    if isinstance(outcome, Answer):
        result = Success(outcome.result)
    else:
        code, message, data = outcome.error
        result = Error(code, message, dict(data) if data else NODATA)
    return _message(request_id, result)


def refusal(garbage: Garbage) -> Response:
    """The response to a line that is no request."""
    return _message(garbage.id, Error(garbage.code, garbage.message))


def invalid(message: str) -> Failure:
    """The request makes no sense at this moment."""
    return Failure(WireError(INVALID_REQUEST, message))


def _message(request_id: Id, result: object) -> Response:
    request = RpcRequest("", [], wire_id(request_id))
    return cast("Response", to_serializable_one(to_response(request, result)))


def _named(params: Params) -> Mapping[str, object]:
    if params is None:
        return {}
    if isinstance(params, list):
        raise InvalidParams("params must be an object")
    return params
