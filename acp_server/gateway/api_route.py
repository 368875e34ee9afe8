"""One route of the API as a value: what it takes, what it answers, who makes the answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from acp_server.gateway.looking import Looking
from schemas.gateway_api import ApiModel
from schemas.gateway_queries import ApiQuery

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
