"""What must hold on every connection, whatever is tested: who may speak when. Knows no process.

Fed with each message in the order of the wire; raises Disorder at the first that breaks a rule. The shapes
of messages are `acp_schema`'s business, their order and their upkeep of state are checked here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

BETWEEN_TURNS = frozenset(
    {
        "usage_update",
        "session_info_update",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
    }
)
"""All that may be said of a session while nobody waits for it."""
REPLAYED = frozenset({"user_message_chunk"})
"""What only a load brings: in a live turn the editor shows its own user's words itself."""
OPENING = ("session/new", "session/load", "session/resume", "session/fork")
"""Requests whose answer makes a session known to the client."""
FINAL = ("completed", "failed")
TRIM_META = "wholeturn/history_trimmed"
TWIN_FACTS = ("droppedMessages", "keptTurns", "reason")


class Disorder(AssertionError):
    """A message at the wrong time; the text says which."""


@dataclass
class Talked:
    """What is known of one session on one connection. calls: announced calls and their status."""

    known: bool = False
    prompts: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)
    calls: dict[str, str] = field(default_factory=dict)


class Order:
    """Watches one connection."""

    def __init__(self) -> None:
        self._open: dict[str, Json] = {}
        self._sessions: dict[str, Talked] = {}
        self._twin_of: Json | None = None

    def session(self, session_id: object) -> Talked:
        """What was seen of a session."""
        return self._sessions.setdefault(str(session_id), Talked())

    def sent(self, frame: Mapping[str, Any]) -> None:
        """The client sends this; right or wrong, it may be answered."""
        if "method" not in frame or "id" not in frame:
            return
        key, params = json.dumps(frame["id"]), frame.get("params")
        self._open[key] = dict(frame)
        session_id = params.get("sessionId") if isinstance(params, dict) else None
        if isinstance(session_id, str):
            talked = self.session(session_id)
            talked.loads |= {key} if frame["method"] == "session/load" else set()
            talked.prompts |= {key} if frame["method"] == "session/prompt" else set()

    def came(self, frame: Mapping[str, Any]) -> None:
        """The agent sent this."""
        update = frame["params"]["update"] if frame.get("method") == "session/update" else None
        self._check_twin(update)
        if update is not None:
            self._update(frame["params"]["sessionId"], update)
        elif "method" not in frame:
            self._reply(frame)

    # ------------------------------------------------------------ updates

    def _update(self, session_id: str, update: Json) -> None:
        kind, talked = update["sessionUpdate"], self.session(session_id)
        if not (talked.known or talked.loads):
            raise Disorder(f"{kind} for a session that the client does not know yet")
        trim = kind == "history_trimmed" or TRIM_META in (update.get("_meta") or {})
        live = bool(talked.prompts or talked.loads)
        if not live and (kind not in BETWEEN_TURNS or trim):
            raise Disorder(f"{kind} while no turn runs and nothing is loaded")
        if kind in REPLAYED and not talked.loads:
            raise Disorder(f"{kind} in a live turn")
        if nulls := [name for name, value in update.items() if value is None]:
            raise Disorder(f"{kind} has null values, which some clients refuse: {nulls}")
        if kind in ("tool_call", "tool_call_update"):
            _tool(talked, update)
        if kind == "history_trimmed":
            self._twin_of = update

    def _check_twin(self, update: Json | None) -> None:
        """Right after each trim message its conformant twin, with the same facts."""
        trim, self._twin_of = self._twin_of, None
        if trim is None:
            return
        facts = ((update or {}).get("_meta") or {}).get(TRIM_META)
        if facts is None or any(facts[name] != trim[name] for name in TWIN_FACTS):
            raise Disorder(f"history_trimmed without its twin: {update}")

    # ------------------------------------------------------------ replies

    def _reply(self, frame: Mapping[str, Any]) -> None:
        key = json.dumps(frame["id"])
        request = self._open.pop(key, None)
        if request is None:
            if frame["id"] is None and "error" in frame:
                return
            raise Disorder(f"an answer to nothing, or a second one: {frame}")
        params = request.get("params")
        session_id = params.get("sessionId") if isinstance(params, dict) else None
        if request["method"] in OPENING and "result" in frame:
            self.session(frame["result"].get("sessionId", session_id)).known = True
        if isinstance(session_id, str):
            self._over(self.session(session_id), key, request["method"])

    def _over(self, talked: Talked, key: str, method: str) -> None:
        talked.prompts.discard(key)
        talked.loads.discard(key)
        unfinished = {call: status for call, status in talked.calls.items() if status not in FINAL}
        if method == "session/prompt" and not talked.prompts and unfinished:
            raise Disorder(f"the turn is over and these calls are not: {unfinished}")


def _tool(talked: Talked, update: Json) -> None:
    kind, call = update["sessionUpdate"], update["toolCallId"]
    if not isinstance(update.get("rawInput", {}), dict):
        raise Disorder("rawInput must be an object: some clients refuse all else")
    if kind == "tool_call":
        if call in talked.calls and not talked.loads:
            raise Disorder(f"the call {call} was announced twice")
        if talked.loads and update.get("status") not in FINAL:
            raise Disorder(f"the call {call} is replayed as if it were still running")
        talked.calls[call] = update.get("status", "pending")
        return
    if call not in talked.calls:
        raise Disorder(f"an update of the call {call}, which was never announced")
    if talked.calls[call] in FINAL:
        raise Disorder(f"the call {call} was final already")
    talked.calls[call] = update.get("status", talked.calls[call])
