"""What the file of a checked-out folder may set before the user trusts it. Pure.

A list of what is let in: limits and retention, and a choice among agents, providers and models that the
user's own settings name. Every text let in is thus one of a fixed set or a name of the user's; no address,
command, path or code can pass, whatever keys come to the schema later.
"""

import shlex
from typing import NamedTuple

from acp_server.config.check import MOST_FAULTS, more
from acp_server.config.keys import Key, Tree, key_text, leaves, put, subtree, table
from acp_server.config.layers import Layer
from acp_server.config.models import pair_of
from acp_server.config.nearest import IMPLIED_AGENT
from runtime.profiles import BUILT_IN_CONTEXTS

FORBIDDEN = "a project file that is not trusted may not set it"
NOT_YOURS = "it names {what} that your own settings do not have"


class Admitted(NamedTuple):
    """The layer that counts. refused: the keys that were left out, and why, in the file's order."""

    layer: Layer
    refused: tuple[tuple[Key, str], ...] = ()


def admit(layer: Layer, own: Tree) -> Admitted:
    """The part of an untrusted file that may count. own: what every other source says."""
    kept: Tree = {}
    refused: dict[Key, str] = {}
    for key, value in leaves(layer.tree):
        reason = _reason(key, value, own)
        if reason is None:
            put(kept, key, value)
        else:
            refused[_named_by(key)] = reason
    return Admitted(layer._replace(tree=kept), tuple(refused.items()))


def refusals(admitted: Admitted) -> list[str]:
    """A sentence for each key left out, naming the command that lets it in."""
    layer = admitted.layer
    command = f"wholeturn trust {shlex.quote(layer.folder)}"
    told = [
        layer.says(key, f"{key_text(key)} is left out: {reason}; to permit it: {command}")
        for key, reason in admitted.refused[:MOST_FAULTS]
    ]
    return [*told, *more(len(admitted.refused))]


def _reason(key: Key, value: object, own: Tree) -> str | None:
    match key:
        case ("runtime_profiles", _, "tools") | ("runtime_profiles", _, "loop_context", "options", *_):
            # Limits may be set by anyone; what the agent can do may not.
            return FORBIDDEN
        case ("runtime_profiles", _, "loop_context", "strategy"):
            # Any other strategy is code.
            return None if value in BUILT_IN_CONTEXTS else FORBIDDEN
        case ("runtime_profiles", _, "loop_context", "model") | ("runtime_profiles", _, "summary_model"):
            allowed, what = _names_a_model(value, own), "a model"
        case ("runtime_profiles", *_) | ("agents", _, "runtime_profile"):
            allowed, what = _agent_is_known(key, own), "an agent"
        case ("default_agent",):
            allowed, what = value in _agents(own), "an agent"
        case ("agents", _, "provider"):
            allowed, what = _agent_is_known(key, own) and value in table(own, "providers"), "a provider"
        case ("agents", _, "model"):
            allowed, what = _agent_is_known(key, own) and value in _models(own), "a model"
        case _:
            return None if value == {} and len(key) == 1 else FORBIDDEN
    return None if allowed else NOT_YOURS.format(what=what)


def _agent_is_known(key: Key, own: Tree) -> bool:
    return key[0] != "agents" or key[1] in _agents(own)


def _names_a_model(value: object, own: Tree) -> bool:
    pair = pair_of(own, value) if isinstance(value, str) else None
    return pair is not None and (not pair[1] or pair[1] in _models(own))


def _agents(own: Tree) -> set[object]:
    return set(table(own, "agents")) or {IMPLIED_AGENT}


def _models(own: Tree) -> set[object]:
    sections = [(kind, name, "model") for kind in ("agents", "providers") for name in table(own, kind)]
    listed = {model for name in table(own, "providers") for model in table(own, "providers", name, "models")}
    return {subtree(own, key) for key in sections} - {None} | listed


def _named_by(key: Key) -> Key:
    """A whole provider or server is one refusal, not one for each of its keys."""
    return key[:2] if key[0] in ("providers", "mcp_servers") else key
