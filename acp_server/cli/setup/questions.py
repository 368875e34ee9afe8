"""The questions of `wholeturn setup` to a person at a terminal, and the plan that comes of the answers.

The vendors are those that are looked for when nothing is configured, and any other server. Stores and tries
nothing.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from getpass import getpass
from typing import NamedTuple, Protocol

import trio

from acp_server.config.layers import Key, Tree, subtree
from acp_server.config.merge import IMPLIED_AGENT, default_agent, hint
from acp_server.config.secrets import is_stored
from acp_server.config.writing import Wanted
from runtime.providers.detect import HOSTED, LOCAL, LOOPBACK, Found, ask_models, read_models
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import InvalidParams, InvalidRequest
from runtime.values.profiles import PRESETS

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


class Terminal(Protocol):
    """Someone who can be told and asked."""

    def say(self, text: str) -> None:
        """Show a line."""
        ...

    def ask(self, question: str, default: str = "") -> str:
        """One line; the default for an empty one. Raises InvalidRequest when nobody answers."""
        ...

    def secret(self, question: str) -> str:
        """One line that is not shown."""
        ...


class Tty:
    """The terminal that the command runs in."""

    def say(self, text: str) -> None:
        print(text, flush=True)

    def ask(self, question: str, default: str = "") -> str:
        print(f"{question} [{default}] " if default else f"{question} ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            raise InvalidRequest("The input ended before all questions were answered; nothing was changed.")
        return line.strip() or default

    def secret(self, question: str) -> str:
        try:
            return getpass(f"{question} ").strip()
        except EOFError:
            raise InvalidRequest(
                "The input ended before all questions were answered; nothing was changed."
            ) from None


class Machine(NamedTuple):
    """What is looked up on this machine: the environment, and which servers answer."""

    env: Mapping[str, str]
    find: Callable[[Vendor], Found | None]


def found_server(vendor: Vendor) -> Found | None:
    """The model that a vendor's server on this machine offers, if it runs."""
    own = next((one for one in LOCAL if one.name == vendor.name), None)
    return None if own is None else read_models(own, trio.run(_models, own.port))


async def _models(port: int) -> bytes:
    with trio.move_on_after(1.0):
        return await ask_models(port)
    return b""


def plan_of(terminal: Terminal, machine: Machine) -> Plan:
    """All questions, from the provider to the model."""
    vendor = _vendor(terminal, machine)
    name, base_url = vendor.name, vendor.base_url
    if vendor.name == CUSTOM:
        base_url = _url(terminal)
        name = terminal.ask("A name for it:", CUSTOM)
    found = machine.find(vendor)
    own = next((one for one in LOCAL if one.name == vendor.name), None)
    if own is not None and found is None:
        terminal.say(
            f"Nothing answers on port {own.port} of this machine yet: start it, or type what it will have."
        )
    variable, key = key_of(terminal, vendor, name, machine.env)
    model = _needed(terminal, "Model:", found.model if found else vendor.model)
    window = found.context_window if found and found.model == model else 0
    return Plan(name, vendor.kind, base_url, variable, key, model, window)


def _url(terminal: Terminal) -> str:
    while True:
        url = _needed(terminal, "Base URL of the server (for example http://127.0.0.1:8000/v1):")
        if is_url(url):
            return url
        terminal.say("That is no http:// or https:// address.")


def _vendor(terminal: Terminal, machine: Machine) -> Vendor:
    terminal.say("Which provider answers?")
    for number, vendor in enumerate(VENDORS, 1):
        note = f" ({vendor.variable} is set)" if machine.env.get(vendor.variable) else ""
        terminal.say(f"  {number:>2}  {vendor.label}{note}")
    set_already = (str(n) for n, one in enumerate(VENDORS, 1) if machine.env.get(one.variable))
    default = next(set_already, "1")
    while True:
        answer = terminal.ask("Number or name:", default)
        found = _by_answer(VENDORS, answer)
        if found is not None:
            return found
        terminal.say(f"There is no {answer!r} in the list.")


def _by_answer(vendors: Sequence[Vendor], answer: str) -> Vendor | None:
    if answer.isascii() and answer.isdecimal() and 0 < int(answer) <= len(vendors):
        return vendors[int(answer) - 1]
    return next((vendor for vendor in vendors if vendor.name == answer), None)


def key_of(terminal: Terminal, vendor: Vendor, name: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The variable that stands for the key, and the key if one was typed."""
    if vendor.kind == "local":
        return "", ""
    variable = vendor.variable or variable_for(name)
    if env.get(variable) and _yes(terminal, f"Use the key in the variable {variable}?"):
        return variable, ""
    if is_stored(env, variable) and _yes(terminal, f"Use the key that is stored for {variable}?"):
        return variable, ""
    return typed_key(terminal, vendor, variable)


def typed_key(terminal: Terminal, vendor: Vendor, variable: str) -> tuple[str, str]:
    """Ask for the key itself; only a vendor without a variable of its own may want none."""
    wanted = bool(vendor.variable)
    while True:
        key = terminal.secret(f"API key{'' if wanted else ' (empty for none)'}, not shown:")
        if key and not (key.isascii() and key.isprintable()):
            terminal.say("That holds characters that no key has.")
        elif key or not wanted:
            return (variable if key else ""), key
        else:
            terminal.say(f"{vendor.label} wants a key. Ctrl-C ends this and changes nothing.")


def _yes(terminal: Terminal, question: str) -> bool:
    return terminal.ask(f"{question} (y/n)", "y").lower() in ("y", "yes")


def _needed(terminal: Terminal, question: str, default: str = "") -> str:
    while not (answer := terminal.ask(question, default)):
        terminal.say("An answer is needed. Ctrl-C ends this and changes nothing.")
    return answer
