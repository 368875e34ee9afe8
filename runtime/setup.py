"""What a session runs with, as values and functions. Knows no settings file and no catalog."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from random import random

from runtime.clock import utc_now
from runtime.guidance import Guidance
from runtime.history.counter import HEURISTIC, TokenCounter
from runtime.permission.setup import Permission
from runtime.ports import ContextTrimmer, Provider, Tool
from runtime.prices import Price
from runtime.profiles import Profile, Route
from runtime.redaction import Redaction
from runtime.rows import ToolSpec
from runtime.summaries import Summariser


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
