"""What `wholeturn setup` is to set: which provider, where its key is, which model. Asks nobody.

The vendors are those that are looked for when nothing is configured, and any other server.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from acp_server.config.keys import Key, Tree, subtree
from acp_server.config.nearest import IMPLIED_AGENT, default_agent, hint
from acp_server.config.writing import Wanted
from runtime.errors import InvalidParams
from runtime.profiles import PRESETS
from runtime.providers.detect import HOSTED, LOCAL, LOOPBACK
from runtime.providers.settings import ProviderSettings

INSIDE = "local"
CUSTOM = "custom"
SETTLED: Mapping[str, float | str] = {"trim_slack_ratio": 0.2, "running_turn_overflow": "shorten"}
"""Keys of a profile that a new user is better off with, where the file does not say otherwise."""


class Vendor(NamedTuple):
    """A provider to choose. variable: for its key, '' when it wants none. model: the first, '' for none."""

    name: str
    label: str
    kind: str
    base_url: str = ""
    variable: str = ""
    model: str = ""
    port: int = 0


class Plan(NamedTuple):
    """What is set. variable: stands for the key, '' for none. key: to be stored, '' for nothing to store.

    context_window: tokens, 0 = not known.
    """

    name: str
    kind: str
    base_url: str = ""
    variable: str = ""
    key: str = ""
    model: str = ""
    context_window: int = 0

    def settings(self) -> ProviderSettings:
        """The provider, as it will be configured."""
        return ProviderSettings(
            name=self.name,
            kind=self.kind,
            base_url=self.base_url,
            api_key_env=self.variable,
            model=self.model,
            context_window=self.context_window,
        )


VENDORS: tuple[Vendor, ...] = (
    *(Vendor(api.name, api.name, api.kind, api.base_url, api.variable, api.model) for api in HOSTED),
    *(
        Vendor(
            own.name,
            f"{own.label} on this machine",
            own.kind,
            f"http://{LOOPBACK}:{own.port}{own.path}",
            port=own.port,
        )
        for own in LOCAL
    ),
    Vendor(INSIDE, "a small model inside Wholeturn: no key, no server", "local", model="smollm2"),
    Vendor(CUSTOM, "any other OpenAI-compatible server", "openai"),
)


def vendor(name: str) -> Vendor:
    """The vendor of that name. Raises InvalidParams with the nearest one."""
    known = {one.name: one for one in VENDORS}
    if name not in known:
        raise InvalidParams(f"There is no provider {name[:80]!r}{hint(name, known)}")
    return known[name]


def is_url(text: str) -> bool:
    """Whether it begins as the base URL of a server does."""
    return re.match(r"https?://[^/\s?#]", text) is not None


def variable_for(name: str) -> str:
    """The variable that a key is stored under when its vendor has none of its own."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper() + "_API_KEY"


def wanted_keys(plan: Plan, tree: Tree) -> Wanted:
    """The keys of the user's file that carry the plan out. tree: the file as it is."""
    agent: Key = ("agents", default_agent(tree) or IMPLIED_AGENT)
    section: Key = ("providers", plan.name)
    keys: dict[Key, str | int | float | bool] = {(*agent, "provider"): plan.name}
    if subtree(tree, (*agent, "model")) is not None:
        keys[(*agent, "model")] = plan.model
    profile = subtree(tree, (*agent, "runtime_profile"))
    if profile is None and plan.kind == "local":
        keys[(*agent, "runtime_profile")] = profile = "local_small"
    keys[(*section, "kind")] = plan.kind
    facts = {"base_url": plan.base_url, "api_key_env": plan.variable, "model": plan.model}
    keys |= {(*section, name): value for name, value in facts.items() if value}
    if plan.context_window:
        keys[(*section, "context_window")] = plan.context_window
    return {**keys, **_settled(str(profile or IMPLIED_AGENT), tree)}


def _settled(profile: str, tree: Tree) -> dict[Key, str | int | float | bool]:
    section: Key = ("runtime_profiles", profile)
    base = subtree(tree, (*section, "preset")) or profile
    if base in PRESETS and base != "balanced":
        return {}
    return {
        (*section, name): value for name, value in SETTLED.items() if subtree(tree, (*section, name)) is None
    }
