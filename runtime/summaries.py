"""Asks a model for a summary, and what is checked of it before anyone relies on it. Knows no history."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from runtime.history.budget import effective_context_budget
from runtime.history.truncate import truncate_tool_result
from runtime.model import ModelRequest, Segment, TextPart, UsagePart
from runtime.ports import Provider
from runtime.profiles import Profile, Route
from runtime.rows import Row
from runtime.unicode_text import mended

SUMMARY_SECONDS = 60.0
"""How long a summary may take; a turn waits for it."""
MOST_TOKENS = 2048
"""Of an answer."""
BYTES_A_TOKEN = 3
"""Fewer than in nearly any text, so that what is cut by it fits."""

_QUOTED = re.compile(r'"([^"\n]{8,})"|“([^”\n]{8,})”|«([^»\n]{8,})»')
LEFT_OUT = "[a quote that is not in the conversation was left out]"


@dataclass(frozen=True, slots=True)
class Summary:
    """What a model answered. route_id: of the model; usage: as its provider counted it."""

    text: str
    route_id: str = ""
    usage: UsagePart | None = None

    @property
    def used(self) -> tuple[str, UsagePart] | None:
        """What it cost, by route id; None when the provider did not say."""
        return None if self.usage is None else (self.route_id, self.usage)


@dataclass(frozen=True, slots=True)
class Summariser:
    """A model to ask for summaries: any text, cut to its window."""

    provider: Callable[[], Awaitable[Provider]]
    route: Route

    async def __call__(self, instructions: str, text: str) -> Summary:
        """One request, tried once. Raises ProviderError."""
        window = effective_context_budget(Profile(), self.route).window
        room = (window - MOST_TOKENS) * BYTES_A_TOKEN - len(instructions.encode())
        rows = Row("system", instructions), Row("user", truncate_tool_result(text, max(room, 1000)).text)
        request = ModelRequest(self.route.model, (Segment(rows),), max_output_tokens=MOST_TOKENS)
        said: list[str] = []
        usage = None
        async with (await self.provider()).stream(request) as batches:
            async for batch in batches:
                for part in batch:
                    match part:
                        case TextPart(piece):
                            said.append(piece)
                        case UsagePart():
                            usage = part
                        case _:
                            pass
        return Summary(mended("".join(said)).strip(), self.route.id, usage)


def checked_quotes(text: str, source: str) -> str:
    """The text without quotes that do not stand in what it is about: nobody may be made to have said
    something.
    """
    known = _folded(source)

    def kept(found: re.Match[str]) -> str:
        quote = next(group for group in found.groups() if group is not None)
        return found.group() if _folded(quote).rstrip(".,;:!?…") in known else LEFT_OUT

    return _QUOTED.sub(kept, text)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
