"""What happened, as ACP v2 tells it: the first version's messages made over, and where each session stands.

A session is idle, running, or waiting for a person. Fed with the events that go out, in their order; what
both versions say alike goes through as it is. Pure; knows no connection.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, cast

from acp_server.acp import updates as outbound
from acp_server.acp.client_options import WireOptions
from acp_server.acp.trim_updates import Frame
from acp_server.methods.v2.file_patches import diff_content
from runtime.permission.ask_person import CANCELLED
from runtime.values.events import (
    AgentText,
    AgentThought,
    Event,
    ToolCallChanged,
    ToolCallStarted,
    UsageChanged,
)
from runtime.values.texts import CANCELLED_RESULT, NOT_RUN_RESULT


def in_v2(options: object) -> list[dict[str, object]]:
    """The first version's config options, with their ids under v2's name."""
    found = cast("list[Mapping[str, object]]", options)
    return [{"configId" if key == "id" else key: value for key, value in one.items()} for one in found]


State = Literal["idle", "running", "requires_action"]

NO_MESSAGE = ("", "")


@dataclass(slots=True)
class Standing:
    """One session's foreground work. told: the state that the client knows.

    questions: permissions that are waited for, or were when the turn was stopped. forms: the same of what
    running tool calls ask. streaming: a reply is coming in. calls: that run. replaying: what goes out is the
    past. opened: kind and id of the message that was begun last.
    """

    active: bool = False
    told: State = "idle"
    questions: int = 0
    forms: int = 0
    streaming: bool = False
    calls: set[str] = field(default_factory=set)
    replaying: bool = False
    opened: tuple[str, str] = NO_MESSAGE

    @property
    def state(self) -> State:
        """As it is now: `requires_action` only where nothing goes on beside the questions."""
        if not self.active:
            return "idle"
        waiting = self.questions or self.forms
        goes_on = self.streaming or len(self.calls) > self.forms
        return "requires_action" if waiting and not goes_on else "running"

    def note(self, event: Event) -> None:
        """Take in what happens."""
        if self.replaying:
            return
        match event:
            case AgentText() | AgentThought() | ToolCallStarted():
                self.streaming = True
            case UsageChanged():
                # It closes every reply.
                self.streaming = False
            case ToolCallChanged(call_id, "in_progress"):
                self.calls.add(call_id)
            case ToolCallChanged(call_id):
                self.calls.discard(call_id)
            case _:
                pass

    def begin(self) -> None:
        """Work begins."""
        self.active, self.streaming = True, False
        self.questions = self.forms = 0
        self.calls.clear()

    def begins_message(self, kind: str, message_id: str) -> bool:
        """Whether this piece is the first of its message."""
        fresh, self.opened = (kind, message_id) != self.opened, (kind, message_id)
        return fresh

    @contextmanager
    def replay(self) -> Iterator[None]:
        """Meanwhile what goes out is the past."""
        self.replaying, self.opened = True, NO_MESSAGE
        try:
            yield
        finally:
            self.replaying = False


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
