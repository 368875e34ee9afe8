"""What happened, as ACP v2 tells it: the first version's messages, each made over by its kind.

Knows neither the connection nor any event. What both versions say alike goes through as it is.
"""

from collections.abc import Callable, Mapping
from typing import cast

from acp_server import outbound
from acp_server.frames import Frame
from acp_server.v2.options import in_v2
from acp_server.v2.patches import diff_content
from acp_server.v2.standing import Standing
from acp_server.wire_options import WireOptions
from runtime.events import Event, ToolCallStarted
from runtime.marks import CANCELLED_RESULT, NOT_RUN_RESULT
from runtime.permission.approver import CANCELLED

TRIM_KIND = "_wholeturn_history_trimmed"
"""A kind of our own: here a name that begins with an underscore is the sender's to give."""
PLAN_ID = "plan"
STOPPED = (CANCELLED_RESULT, NOT_RUN_RESULT, CANCELLED)
"""Results by which a call that was cancelled is known: the transcript has it among those that failed."""

Update = dict[str, object]


def updates(session_id: str, event: Event, options: WireOptions, standing: Standing) -> list[Frame]:
    """The notifications for an event, in order; they belong together. None for what v2 does not tell."""
    made = []
    for method, params in outbound.updates(session_id, event, options):
        update = cast("Update", params["update"]) if method == "session/update" else {}
        change = _MAPS.get(str(update.get("sessionUpdate")))
        changed = update if change is None else change(update, standing)
        if changed is not None:
            made.append((method, {**params, "update": changed} if change else params))
    return made


def call_fields(call: ToolCallStarted) -> Update:
    """A call with all that is known of it."""
    return _call(outbound.call_fields(call))


# ---------------------------------------------------------------- messages


def _user(update: Update, standing: Standing) -> Update:
    """The first block makes the message, and makes it anew where the client has it; the others join it."""
    return _whole(update, "user_message") if _begins(update, standing) else update


def _agent(update: Update, standing: Standing) -> Update:
    """As it streams in, or in one piece when it is shown again."""
    kind = str(update["sessionUpdate"]).removesuffix("_chunk")
    return _whole(update, kind) if standing.replaying and _begins(update, standing) else update


def _begins(update: Update, standing: Standing) -> bool:
    return standing.begins_message(str(update["sessionUpdate"]), str(update["messageId"]))


def _whole(update: Update, kind: str) -> Update:
    return {**update, "sessionUpdate": kind, "content": [update["content"]]}


# ---------------------------------------------------------------- tools


def _tool(update: Update, standing: Standing) -> Update:
    return {**_call(update), "sessionUpdate": "tool_call_update"}


def _call(fields: Update) -> Update:
    content = fields.get("content")
    if not isinstance(content, list):
        return fields
    stopped = fields.get("status") == "failed" and any(_text_of(part) in STOPPED for part in content)
    return {
        **fields,
        **({"status": "cancelled"} if stopped else {}),
        "content": [_content(part) for part in content],
    }


def _text_of(part: Mapping[str, object]) -> object:
    block = part.get("content")
    return block.get("text") if isinstance(block, Mapping) else None


def _content(part: Mapping[str, object]) -> Mapping[str, object]:
    if part["type"] != "diff":
        return part
    old = part.get("oldText")
    return diff_content(str(part["path"]), old if isinstance(old, str) else None, str(part["newText"]))


# ---------------------------------------------------------------- the session


def _plan(update: Update, standing: Standing) -> Update:
    plan = {"type": "items", "planId": PLAN_ID, "entries": update["entries"]}
    return {"sessionUpdate": "plan_update", "plan": plan}


def _commands(update: Update, standing: Standing) -> Update:
    commands = [_command(command) for command in cast("list[Update]", update["availableCommands"])]
    return {**update, "availableCommands": commands}


def _command(command: Update) -> Update:
    hint = command.get("input")
    typed = {"input": {"type": "text", **hint}} if isinstance(hint, Mapping) else {}
    return {"type": "command", **command, **typed}


def _options(update: Update, standing: Standing) -> Update:
    return {**update, "configOptions": in_v2(update["configOptions"])}


def _mode(update: Update, standing: Standing) -> None:
    """There are no modes beside the config options, which are told as well."""


def _trimmed(update: Update, standing: Standing) -> Update:
    return {**update, "sessionUpdate": TRIM_KIND}


_MAPS: Mapping[str, Callable[[Update, Standing], Update | None]] = {
    "user_message_chunk": _user,
    "agent_message_chunk": _agent,
    "agent_thought_chunk": _agent,
    "tool_call": _tool,
    "tool_call_update": _tool,
    "plan": _plan,
    "available_commands_update": _commands,
    "config_option_update": _options,
    "current_mode_update": _mode,
    "history_trimmed": _trimmed,
}
