"""What a session runs with, as values and functions, and a model asked for a summary.

What a summary says is checked before anyone relies on it. Knows no settings file, no catalog and no history.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from random import random

from runtime.history.request.budget import effective_context_budget
from runtime.history.rows.collapse import truncate_tool_result
from runtime.history.rows.token_counter import HEURISTIC, TokenCounter
from runtime.permission.modes import Permission
from runtime.ports import ContextTrimmer, Provider, Tool
from runtime.setup.guidance import Guidance
from runtime.setup.redaction import Redaction
from runtime.values.ids_and_time import utc_now
from runtime.values.model import ModelRequest, Price, Segment, TextPart, UsagePart
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row, ToolSpec
from runtime.values.texts import mended

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


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another model to ask when the one in use fails for good, with all that depends on the model."""

    route: Route
    provider: Callable[[], Awaitable[Provider]]
    kind: str = ""
    prompt_tools: bool = False
    counter: TokenCounter = HEURISTIC
    images: bool = True
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """What a session runs with. provider: makes or returns the model. kind: of provider, '' = none is set.

    prompt_tools: the model has no native calls, it writes them into its text. counter: estimates its tokens.
    images: it can see them; the provider of one that cannot writes a line in their place. alternatives: in
    the order in which they are to be asked. prices: by the id of the route, as far as they are configured.
    guidance: files for agents, of the user and of the folders, as they were read last.
    redaction: takes secrets out of prompts and of results, those of `tools` included.
    trimmer: bounds what a running turn's tool loop shows; None: nothing does.
    summarise: asks a model for what stands for dropped turns, where the profile wants that.
    jitter: gives 0.0 <= x < 1.0, so that those who were refused at the same moment do not come back at one.
    agent: the name of the settings that it was made of, '' when there are none.
    """

    profile: Profile
    route: Route
    tools: Mapping[str, Tool]
    system: tuple[str, ...]
    provider: Callable[[], Awaitable[Provider]]
    kind: str = ""
    prompt_tools: bool = False
    counter: TokenCounter = HEURISTIC
    now: Callable[[], str] = utc_now
    images: bool = True
    alternatives: tuple[Alternative, ...] = ()
    prices: Mapping[str, Price] = field(default_factory=dict)
    permission: Permission = field(default_factory=Permission)
    guidance: tuple[Guidance, ...] = ()
    jitter: Callable[[], float] = random
    trimmer: ContextTrimmer | None = None
    redaction: Redaction = field(default_factory=Redaction)
    summarise: Summariser | None = None
    agent: str = ""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is told of them."""
        return tuple(tool.spec for tool in self.tools.values())

    def using(self, other: Alternative) -> "Setup":
        """The same with another model, whose own alternatives are those behind it."""
        behind = self.alternatives[self.alternatives.index(other) + 1 :] if other in self.alternatives else ()
        return replace(
            self,
            route=other.route,
            provider=other.provider,
            kind=other.kind,
            prompt_tools=other.prompt_tools,
            counter=other.counter,
            images=other.images,
            alternatives=behind,
        )
