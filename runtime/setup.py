"""What a session runs with, as values and functions. Knows no settings file and no catalog."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from runtime.clock import utc_now
from runtime.history.counter import HEURISTIC, TokenCounter
from runtime.ports import Provider, Tool
from runtime.profiles import Profile, Route
from runtime.rows import ToolSpec


@dataclass(frozen=True, slots=True)
class Setup:
    """What a session runs with. provider: makes or returns the model. kind: of provider, '' = none is set.

    prompt_tools: the model has no native calls, it writes them into its text. counter: estimates its tokens.
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

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is told of them."""
        return tuple(tool.spec for tool in self.tools.values())
