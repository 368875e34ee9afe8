"""A route of the gateway's API as a value, and the OpenAPI 3.1 description of all routes made of it. Pure.

One source of truth: parameters and answers are those of `schemas.gateway_api`, events those of the feed.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from acp_server.gateway.api.sessions import Looking
from acp_server.gateway.feed.event_schemas import event_schemas
from schemas.gateway_api import ApiModel, ProblemAnswer
from schemas.gateway_queries import LONGEST_ID, ApiQuery
from schemas.version import __version__

View = Callable[[Looking, str, ApiQuery], Awaitable[ApiModel]]
"""Makes the answer, from the session's id ('' where the path names none). Raises WholeturnError."""


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """A route. name: unique among them. summary: one sentence."""

    path: str
    name: str
    summary: str
    query: type[ApiQuery]
    answer: type[ApiModel]
    view: View


Json = dict[str, Any]

PROBLEMS: Mapping[str, str] = {
    "400": "A parameter cannot be used; the message names it.",
    "401": "The bearer token is missing or wrong.",
    "403": "The request comes from a page of another origin.",
    "404": "There is no such session.",
    "405": "Only GET and HEAD are served.",
    "413": "The request has a body.",
    "421": "The host that it names is not served here.",
    "429": "Too many requests in a short time; Retry-After says when to come back.",
    "431": "The address or a header is too long; there is no answer beside the status.",
    "503": "The store or the settings cannot be read now.",
}
BARE = frozenset({"431"})
"""Those that the server gives before any of our code."""
SCHEME = "bearer"
REFERENCE = "#/components/schemas/{model}"


def description(routes: Iterable[ApiRoute]) -> Json:
    """The whole description."""
    table = tuple(routes)
    answers: list[type[BaseModel]] = [*(route.answer for route in table), ProblemAnswer]
    keyed, shared = models_json_schema(
        [(model, "serialization") for model in dict.fromkeys(answers)], ref_template=REFERENCE
    )
    schemas = {name: plain(schema) for name, schema in shared.get("$defs", {}).items()}
    names = {model: ref["$ref"].rsplit("/", 1)[1] for (model, _), ref in keyed.items()}
    paths = {route.path: {"get": operation(route, names[route.answer])} for route in table}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Wholeturn gateway",
            "version": __version__,
            "summary": "Sessions, their transcripts and what the model still gets. Nothing is changed.",
        },
        "security": [{SCHEME: []}],
        "paths": {**paths, "/api/events": {"get": events()}, "/api/openapi.json": {"get": itself()}},
        "components": {
            "schemas": {**schemas, "Event": {"oneOf": list(event_schemas().values())}},
            "responses": dict(problems()),
            "securitySchemes": {SCHEME: {"type": "http", "scheme": "bearer"}},
        },
    }


def operation(route: ApiRoute, answer: str) -> Json:
    """A route of the API."""
    parameters = [*path_parameters(route.path), *query_parameters(route.query)]
    missing = () if "{" in route.path else ("404",)
    return {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {"200": answer_of({"$ref": REFERENCE.format(model=answer)}), **refusals(missing)},
    }


def itself() -> Json:
    """The route of the description."""
    return {
        "operationId": "getDescription",
        "summary": "This description.",
        "parameters": [],
        "responses": {"200": answer_of({"type": "object"}), **refusals(("404", "503"))},
    }


def events() -> Json:
    """The feed as Server-Sent Events. Its frames go on until one side ends the stream."""
    listed = {"type": "string", "maxLength": 2000}
    parameters = [
        {"name": "session_id", "description": "Only of these sessions, a list with commas."},
        {"name": "types", "description": "Only of these types, a list with commas."},
    ]
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {
        "operationId": "followEvents",
        "summary": "What happens in sessions, as it happens. Each event's data is an Event as JSON.",
        "parameters": [{**one, "in": "query", "schema": listed} for one in parameters],
        "responses": {"200": {"description": "The stream.", "content": content}, **refusals(("404",))},
    }


def answer_of(schema: Json) -> Json:
    """An answer that is JSON."""
    return {"description": "The answer.", "content": {"application/json": {"schema": schema}}}


def refusals(without: Iterable[str] = ()) -> Json:
    """How any route may refuse a request."""
    left_out = frozenset(without)
    return {
        status: {"$ref": f"#/components/responses/{status}"} for status in PROBLEMS if status not in left_out
    }


def problems() -> Iterator[tuple[str, Json]]:
    """The refusals by their status."""
    schema = {"$ref": REFERENCE.format(model=ProblemAnswer.__name__)}
    content = {"application/json": {"schema": schema}}
    for status, text in PROBLEMS.items():
        yield status, {"description": text} | ({} if status in BARE else {"content": content})


def path_parameters(path: str) -> Iterator[Json]:
    """What stands in a path."""
    if "{session_id}" in path:
        schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}
        yield {"name": "session_id", "in": "path", "required": True, "schema": schema}


def query_parameters(model: type[ApiQuery]) -> Iterator[Json]:
    """What a query may hold, of its model."""
    schema = model.model_json_schema()
    for name, field in schema.get("properties", {}).items():
        shape = optional(plain(field))
        described = shape.pop("description", "")
        yield {"name": name, "in": "query", "description": described, "schema": shape}


def plain(schema: Json) -> Json:
    """A schema without the titles that repeat its names."""
    cleaned = {name: value for name, value in schema.items() if name != "title"}
    if "properties" in cleaned:
        cleaned["properties"] = {name: plain(value) for name, value in cleaned["properties"].items()}
    return cleaned


def optional(shape: Json) -> Json:
    """Without the null that stands for a parameter that was not given."""
    choices = [one for one in shape.get("anyOf", ()) if one.get("type") != "null"]
    return dict(choices[0]) if len(choices) == 1 else shape
