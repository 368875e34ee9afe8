"""Prompts that are answered without the model: commands, and what to set when there is no model.

Knows the command table; the answers are shown like any reply and are no part of what the model sees.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module

from acp_server.config.paths import user_file
from runtime.conversation import Conversation
from runtime.history.budget import effective_context_budget

COMMANDS: tuple[tuple[str, str, str | None], ...] = (
    ("help", "What this agent can do, the model it uses and the limits in force", None),
)
"""(name, what it does, hint for its argument or None), as told to clients."""


async def answer_locally(talk: Conversation, text: str) -> str | None:
    """The answer to a prompt that needs no model; None when the model is to be asked."""
    word = text.strip().split(maxsplit=1)[0] if text.strip() else ""
    command = HANDLERS.get(word)
    if command is not None:
        return await command(talk)
    if not talk.setup.kind:
        return await no_model(talk)
    return None


async def no_model(talk: Conversation) -> str:
    """What to set so that a model answers, the nearest option first."""
    # Loaded here: it probes ports, and nobody with a model needs it.
    detect = import_module("runtime.providers.detect")
    found = await detect.detect(os.environ)
    return advice([(option.title, option.toml) for option in found], str(user_file(os.environ)))


def advice(options: Sequence[tuple[str, str]], path: str) -> str:
    """The text for someone without a model. options: what was found, and the lines to set; best first."""
    lines = ["No model is configured, so there is nobody to answer this yet.", ""]
    if not options:
        options = [(NOTHING_FOUND, EXAMPLE)]
    (title, toml), *others = options
    how = "For example, put" if title == NOTHING_FOUND else "To use it, put"
    lines += [f"{title} {how} this into `{path}`:", "", "```toml", toml.strip(), "```"]
    lines += [f"\nAlso possible: {other}" for other, _ in others]
    return "\n".join([*lines, "", "Then ask again in a new session."])


async def show_help(talk: Conversation) -> str:
    """Commands, model and limits."""
    route, profile = talk.keeper.route, talk.setup.profile
    budget = effective_context_budget(profile, route)
    named = f"{route.model or 'its default model'} by {route.provider}"
    model = named if talk.setup.kind else "none configured"
    window = "not known" if budget.window_source == "compatibility_fallback" else f"{budget.window} tokens"
    lines = [
        "I read and search the files of this folder and answer questions about them.",
        "",
        "Commands:",
        *(f"- `/{name}`: {what}" for name, what, _ in COMMANDS),
        "",
        f"Model: {model}; context window {window}.",
        f"Kept of this conversation: {profile.name!r} profile, at most "
        f"{budget.budget or budget.window} tokens. "
        "When older turns are left out, you and the model are both told.",
        f"Tools: {', '.join(sorted(talk.setup.tools))}.",
    ]
    return "\n".join(lines)


NOTHING_FOUND = "No API key is in the environment and no local model server answers. Any server will do."
EXAMPLE = """
[agents.default]
provider = "local"

[providers.local]
kind = "openai"
base_url = "http://127.0.0.1:11434/v1"   # any OpenAI-compatible server
model = "qwen3-coder"
context_window = 32000
# api_key_env = "MY_API_KEY"             # the variable that holds the key, if one is needed
"""

HANDLERS: Mapping[str, Callable[[Conversation], Awaitable[str]]] = {"/help": show_help}
