"""Prompts that are answered without the model: commands, and what to set when there is no model.

Knows the command table; the answers are shown like any reply and are no part of what the model sees.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence

from acp_server.assembly.mcp_servers import show_no_servers
from acp_server.commands.context_commands import pin_turn, show_context, show_goal
from acp_server.commands.session_commands import bring_back, clear, compact, refusal_to_continue, rewind_to
from acp_server.commands.settings_commands import set_model, set_profile, show_cost
from acp_server.config.paths import user_file
from runtime.conversation.conversation import Conversation
from runtime.conversation.pin_and_expand import offer
from runtime.history.request.budget import effective_context_budget
from runtime.values.texts import CONTINUING

COMMANDS: tuple[tuple[str, str, str | None], ...] = (
    ("help", "What this agent can do, the model it uses and the limits in force", None),
    ("model", "List the models, or use another one", "name of a model"),
    ("profile", "List the retention profiles, or use another one", "name of a profile"),
    ("mcp", "How the MCP servers of this session stand", None),
    ("cost", "Tokens used by the last turn and by this session, and what they cost", None),
    ("context", "What fills the model's context, turn by turn, and what would leave it next", None),
    ("goal", "Say what the conversation is about from now on", "what you want"),
    ("pin", "Keep a turn through every trim", "number of the turn, or: off and its number"),
    ("compact", "Let the model see only the newest turns from now on", "number of turns, 2 without one"),
    ("clear", "Let the model start anew; what was said stays to be read", None),
    ("continue", "Go on with a turn that was interrupted", None),
    ("rewind", "Make another session that ends with an earlier turn", "number of the turn"),
    ("expand", "Let the model see earlier turns again that fit the limits by now", None),
)
"""(name, what it does, hint for its argument or None), as told to clients."""


async def answer_locally(talk: Conversation, text: str) -> str | None:
    """The answer to a prompt that needs no model; None when the model is to be asked."""
    await offer(talk)
    word, rest = words_of(text)
    command = HANDLERS.get(word)
    if command is not None:
        return await command(talk, rest)
    if not talk.setup.kind:
        return await no_model(talk)
    return refusal_to_continue(talk, text) if text in CONTINUING.values() else None


def words_of(text: str) -> tuple[str, str]:
    """A prompt's first word, and what stands behind it."""
    word, rest = [*text.split(maxsplit=1), "", ""][:2]
    return word, rest


def is_command(text: str) -> bool:
    """Whether the prompt is answered by a command."""
    return words_of(text)[0] in HANDLERS


async def no_model(talk: Conversation) -> str:
    """What to set so that a model answers, the nearest option first."""
    # Loaded here: it probes ports, and nobody with a model needs it.
    from runtime.providers.detect import detect

    found = await detect(os.environ)
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
    lines += ["", "`wholeturn setup` in a terminal asks for these, tries them and writes them down."]
    return "\n".join([*lines, "Then ask again in a new session."])


async def show_help(talk: Conversation, rest: str) -> str:
    """Commands, model and limits."""
    route, profile = talk.keeper.route, talk.setup.profile
    budget = effective_context_budget(profile, route)
    named = f"{route.model or 'its default model'} by {route.provider}"
    model = named if talk.setup.kind else "none configured"
    window = "not known" if budget.window_source == "compatibility_fallback" else f"{budget.window} tokens"
    lines = [
        "I read and edit the files of this folder, run commands, and answer questions.",
        "",
        "Commands:",
        *(f"- `/{name}`: {what}" for name, what, _ in commands_of(talk)),
        "",
        f"Model: {model}; context window {window}.",
        f"Kept of this conversation: {profile.name!r} profile, at most "
        f"{budget.budget or budget.window} tokens. "
        "When older turns are left out, you and the model are both told.",
        f"Mode: `{talk.approver.mode}`.",
        f"Guidance files: {', '.join(file.name for file in talk.setup.guidance) or 'none'}.",
        f"Tools: {few(sorted(talk.setup.tools))}.",
    ]
    return "\n".join(lines)


def commands_of(talk: Conversation) -> tuple[tuple[str, str, str | None], ...]:
    """All commands of a session, those of the user's own making too."""
    own = talk.notes.commands.values()
    return (*COMMANDS, *((one.name, one.description, one.hint or None) for one in own))


def few(names: Sequence[str]) -> str:
    """The names, not more than a person reads."""
    left = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {left} more" if left > 0 else "")


MOST_NAMES = 60
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

HANDLERS: Mapping[str, Callable[[Conversation, str], Awaitable[str]]] = {
    "/help": show_help,
    "/model": set_model,
    "/profile": set_profile,
    "/mcp": show_no_servers,
    "/cost": show_cost,
    "/compact": compact,
    "/clear": clear,
    "/context": show_context,
    "/goal": show_goal,
    "/pin": pin_turn,
    "/rewind": rewind_to,
    "/expand": bring_back,
}
"""Command -> what answers it; gets what stands behind the command."""
