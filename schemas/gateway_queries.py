"""The parameters of the gateway's read-only `/api`, as they stand in an address. OpenAPI describes them."""

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

LAST_ENTRY = 2**53 - 1
"""Behind every entry that there can be; the largest whole number that every JSON reader keeps."""
MOST_TEXT = 200_000
LONGEST_CURSOR = 2400
LONGEST_ID = 500
CURSOR = r"^(?:[0-9a-f]{2}){1,60}\.(?:[0-9a-f]{2}){1,1000}$"


class ApiQuery(BaseModel):
    """Base of all queries. A parameter that is not named here is an error; a number is digits alone."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @field_validator("limit", "after", "before", "text_limit", mode="before", check_fields=False)
    @classmethod
    def _digits(cls, value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,16}", value):
            raise ValueError("must be a whole number")
        return value


class SessionsQuery(ApiQuery):
    """cwd: of exactly that folder. q: words in the title or the folder. cursor: from the page before."""

    cwd: Annotated[str, Field(max_length=1024, description="Sessions of exactly this folder.")] | None = None
    q: Annotated[str, Field(max_length=200, description="A text in the title or the folder.")] | None = None
    cursor: (
        Annotated[
            str,
            Field(pattern=CURSOR, max_length=LONGEST_CURSOR, description="The page before's `next_cursor`."),
        ]
        | None
    ) = None
    limit: Annotated[int, Field(ge=1, le=200, description="How many at most.")] = 50


class NoQuery(ApiQuery):
    """Takes no parameters."""


class EntriesQuery(ApiQuery):
    """A page of what begins behind `after`, or else of the last that begins before `before`; oldest first."""

    after: Annotated[int, Field(ge=0, le=LAST_ENTRY, description="What begins behind this entry.")] | None = (
        None
    )
    before: (
        Annotated[
            int, Field(ge=1, le=LAST_ENTRY, description="The last that begin before it, without `after`.")
        ]
        | None
    ) = None
    limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 20


class TrimsQuery(EntriesQuery):
    """As many notices as fit one page."""

    limit: Annotated[int, Field(ge=1, le=200, description="How many at most.")] = 50


class TranscriptQuery(EntriesQuery):
    """text_limit: characters of one text."""

    text_limit: Annotated[
        int, Field(ge=0, le=MOST_TEXT, description="Characters of each text at most; its length is told.")
    ] = 4000
