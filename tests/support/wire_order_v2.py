"""What must hold on every connection that speaks ACP v2: who may speak when. Knows no process.

The twin of `wire_order`: there the answer to a prompt ends a turn, here a state does.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.wire_order import Disorder, Json

FINAL = ("completed", "failed", "cancelled")
OF_A_TURN = frozenset(
    {
        "agent_message_chunk",
        "agent_thought_chunk",
        "agent_message",
        "agent_thought",
        "user_message",
        "user_message_chunk",
        "tool_call_update",
        "plan_update",
        "compaction_update",
        "notice",
        "_wholeturn_history_trimmed",
    }
)
"""What is said only while work is going on, or while the past is shown."""
GONE = frozenset({"tool_call", "plan", "current_mode_update", "history_trimmed"})
OPENING = ("session/new", "session/resume")


@dataclass
class Talked:
    """What is known of one session on one connection. calls: their status. asked: open questions."""

    known: bool = False
    state: str = "idle"
    resumes: set[str] = field(default_factory=set)
    calls: dict[str, str] = field(default_factory=dict)
    messages: set[str] = field(default_factory=set)
    acknowledged: list[str] = field(default_factory=list)
    snapshot: bool = False
    asked: int = 0


class OrderV2:
    """Watches one connection."""

    def __init__(self) -> None:
        self._open: dict[str, Json] = {}
        self._sessions: dict[str, Talked] = {}

    def session(self, session_id: object) -> Talked:
        """What was seen of a session."""
        return self._sessions.setdefault(str(session_id), Talked())

    def sent(self, frame: Mapping[str, object]) -> None:
        """The client sends this; right or wrong, it may be answered."""
        if "method" not in frame or "id" not in frame:
            return
        key, params = json.dumps(frame["id"]), frame.get("params")
        self._open[key] = dict(frame)
        if frame["method"] == "session/resume" and isinstance(params, dict):
            talked = self.session(params.get("sessionId"))
            talked.resumes.add(key)
            talked.snapshot = False

    def came(self, frame: Mapping[str, object]) -> None:
        """The agent sent this."""
        params = frame.get("params")
        if isinstance(params, dict) and frame.get("method") == "session/update":
            self._update(self.session(params["sessionId"]), params["update"])
        elif isinstance(params, dict) and "sessionId" in params:
            self.session(params["sessionId"]).asked += 1
        elif "method" not in frame:
            self._reply(frame)

    # ------------------------------------------------------------ updates

    def _update(self, talked: Talked, update: Json) -> None:
        kind = update["sessionUpdate"]
        if kind in GONE:
            raise Disorder(f"{kind} is no kind of v2")
        if not (talked.known or talked.resumes):
            raise Disorder(f"{kind} for a session that the client does not know yet")
        if kind in OF_A_TURN and talked.state == "idle" and not talked.resumes:
            raise Disorder(f"{kind} while the session is idle")
        if nulls := [name for name, value in update.items() if value is None]:
            raise Disorder(f"{kind} has null values: {nulls}")
        if kind == "state_update":
            _state(talked, update)
        elif kind == "tool_call_update":
            _tool(talked, update)
        elif kind.startswith("user_message"):
            talked.messages.add(update["messageId"])

    # ------------------------------------------------------------ replies

    def _reply(self, frame: Mapping[str, object]) -> None:
        request = self._open.pop(json.dumps(frame["id"]), None)
        if request is None:
            if frame["id"] is None and "error" in frame:
                return
            raise Disorder(f"an answer to nothing, or a second one: {frame}")
        params = request.get("params")
        session_id = params.get("sessionId") if isinstance(params, dict) else None
        result = frame.get("result")
        if isinstance(result, dict) and request["method"] in OPENING:
            self.session(result.get("sessionId", session_id)).known = True
        self._over(self.session(session_id), json.dumps(frame["id"]), request["method"], result)

    def _over(self, talked: Talked, key: str, method: str, result: object) -> None:
        talked.resumes.discard(key)
        if not isinstance(result, dict):
            return
        if method == "session/resume" and not talked.snapshot:
            raise Disorder("a resume that does not say where the session stands")
        if method == "session/prompt":
            if talked.state == "idle":
                raise Disorder("a prompt was taken while no work is going on")
            talked.acknowledged.append(result["messageId"])
        if method == "session/close" and talked.state != "idle":
            raise Disorder("a session was closed whose work has no end")


def _state(talked: Talked, update: Json) -> None:
    state = update["state"]
    if state == "idle" and talked.state != "idle":
        if "stopReason" not in update:
            raise Disorder("work ended without a reason")
        if unfinished := {call: now for call, now in talked.calls.items() if now not in FINAL}:
            raise Disorder(f"the session is idle and these calls are not done: {unfinished}")
        if missing := set(talked.acknowledged) - talked.messages:
            raise Disorder(f"prompts were taken and never shown: {missing}")
    if state == "requires_action" and talked.state == "idle" and not talked.resumes:
        raise Disorder("a session that waits before it works")
    talked.state, talked.snapshot = state, True


def _tool(talked: Talked, update: Json) -> None:
    call, status = update["toolCallId"], update.get("status")
    if not isinstance(update.get("rawInput", {}), dict):
        raise Disorder("rawInput must be an object: some clients refuse all else")
    if call not in talked.calls and "title" not in update:
        raise Disorder(f"the call {call} is not introduced")
    if talked.resumes:
        if status not in FINAL:
            raise Disorder(f"the call {call} is replayed as if it were still running")
    elif talked.calls.get(call) in FINAL:
        raise Disorder(f"the call {call} was final already")
    talked.calls[call] = status or talked.calls.get(call, "pending")
