"""The read-only JSON below `/api`: one table of routes, of which the OpenAPI description is made as well.

Knows how a query is read and an answer or a refusal is written; what is in an answer is made by the views.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from acp_server.gateway.api.openapi import ApiRoute, description
from acp_server.gateway.api.sessions import Looking, context_answer, session_answer, session_list
from acp_server.gateway.api.timeline import timeline_page
from acp_server.gateway.api.transcript import transcript_page
from acp_server.gateway.api.trims import trim_list
from runtime.values.errors import ConfigError, InvalidParams, ResourceNotFound, StoreError, WholeturnError
from schemas.gateway_api import (
    ApiModel,
    ContextAnswer,
    SessionAnswer,
    SessionList,
    TimelinePage,
    TranscriptPage,
    TrimList,
)
from schemas.gateway_queries import (
    LONGEST_ID,
    ApiQuery,
    EntriesQuery,
    NoQuery,
    SessionsQuery,
    TranscriptQuery,
    TrimsQuery,
)

if TYPE_CHECKING:
    from acp_server.gateway.sessions.process_app import GatewayState

STATUS: Mapping[type[WholeturnError], int] = {
    InvalidParams: 400,
    StoreError: 503,
    ConfigError: 503,
}
"""What a view may raise, by the status with which it is told. The sentences are fit for a client."""
NO_SESSION = "There is no such session."
"""ResourceNotFound, without the id that was sent."""


async def _sessions(looking: Looking, _: str, query: ApiQuery) -> ApiModel:
    assert isinstance(query, SessionsQuery)
    return await session_list(looking, query)


async def _session(looking: Looking, session_id: str, _: ApiQuery) -> ApiModel:
    return await session_answer(looking, await looking.at(session_id))


async def _context(looking: Looking, session_id: str, _: ApiQuery) -> ApiModel:
    return await context_answer(looking, await looking.at(session_id))


async def _transcript(looking: Looking, session_id: str, query: ApiQuery) -> ApiModel:
    assert isinstance(query, TranscriptQuery)
    return await transcript_page(looking, await looking.at(session_id), query)


async def _trims(looking: Looking, session_id: str, query: ApiQuery) -> ApiModel:
    assert isinstance(query, TrimsQuery)
    return await trim_list(await looking.at(session_id), query)


async def _timeline(looking: Looking, session_id: str, query: ApiQuery) -> ApiModel:
    assert isinstance(query, EntriesQuery)
    return await timeline_page(await looking.at(session_id), query)


_ONE = "/api/sessions/{session_id}"
ROUTES = (
    ApiRoute(
        "/api/sessions",
        "listSessions",
        "Sessions, newest change first.",
        SessionsQuery,
        SessionList,
        _sessions,
    ),
    ApiRoute(_ONE, "getSession", "One session.", NoQuery, SessionAnswer, _session),
    ApiRoute(
        f"{_ONE}/context",
        "getContext",
        "What fills the session's next request, piece by piece.",
        NoQuery,
        ContextAnswer,
        _context,
    ),
    ApiRoute(
        f"{_ONE}/transcript",
        "getTranscript",
        "Turns, with what the model still gets of each.",
        TranscriptQuery,
        TranscriptPage,
        _transcript,
    ),
    ApiRoute(f"{_ONE}/trims", "getTrims", "Notices of what left the history.", TrimsQuery, TrimList, _trims),
    ApiRoute(
        f"{_ONE}/timeline",
        "getTimeline",
        "The requests of some turns, with what filled each.",
        EntriesQuery,
        TimelinePage,
        _timeline,
    ),
)


def routes(state: "GatewayState") -> list[BaseRoute]:
    """The API's routes."""
    looking = Looking(state.app)

    async def describe(request: Request) -> Response:
        query_of(request, NoQuery)
        return JSONResponse(described())

    itself = Route("/api/openapi.json", describe)
    return [itself, *(Route(route.path, endpoint(looking, route), name=route.name) for route in ROUTES)]


@cache
def described() -> dict[str, Any]:
    """The description, made when it is first asked for."""
    return description(ROUTES)


def endpoint(looking: Looking, route: ApiRoute) -> Callable[[Request], Awaitable[Response]]:
    """The handler of a route. Raises HTTPException."""

    async def handle(request: Request) -> Response:
        query = query_of(request, route.query)
        session_id = str(request.path_params.get("session_id", ""))
        try:
            if len(session_id) > LONGEST_ID:
                raise HTTPException(404, NO_SESSION)
            answer = await route.view(looking, session_id, query)
        except ResourceNotFound as error:
            raise HTTPException(404, NO_SESSION) from error
        except WholeturnError as error:
            raise HTTPException(status_of(error), error.message) from error
        return Response(answer.model_dump_json(), media_type="application/json")

    return handle


def status_of(error: WholeturnError) -> int:
    """The status of an error, 500 for one that no view should raise."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


def query_of(request: Request, model: type[ApiQuery]) -> ApiQuery:
    """The query as values. Raises HTTPException 400 that names the parameter."""
    given = request.query_params.multi_items()
    counted = Counter(name for name, _ in given)
    if twice := next((name for name, count in counted.items() if count > 1), None):
        raise HTTPException(400, f"The parameter {known(twice, model)} is given more than once.")
    try:
        return model.model_validate_strings(dict(given))
    except ValidationError as error:
        raise HTTPException(400, sentence(error, model)) from None


def sentence(error: ValidationError, model: type[ApiQuery]) -> str:
    """What is wrong with a query, without what was given."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        takes = ", ".join(model.model_fields) or "none"
        return f"There is a parameter that this does not take. It takes: {takes}."
    return f"The parameter {known(name, model)} cannot be used: {first['msg'].removeprefix('Value error, ')}."


def known(name: str, model: type[ApiQuery]) -> str:
    """A parameter's name, if it is one of ours."""
    return repr(name) if name in model.model_fields else "that is not known"
