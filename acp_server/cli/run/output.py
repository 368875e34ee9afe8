"""What `wholeturn run` prints: text, one JSON object, or events as they come. Knows no session.

A line of `--output stream-json` is a frame of the gateway's event feed, or the result, which comes last; the
schema of each is in `schemas/run_stream.schema.json`.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from acp_server.acp.trim_updates import trim_facts
from acp_server.cli.output import printing
from acp_server.gateway.feed.event_frames import Origin, frame
from acp_server.gateway.feed.event_schemas import (
    COUNT,
    OBJECT,
    TEXT,
    Schema,
    event_schemas,
    items,
    one_of,
    record,
)
from runtime.embed.silent_client import BareClient
from runtime.ports import PermissionOption, PermissionOutcome
from runtime.values.events import (
    AgentText,
    Event,
    HistoryTrimmed,
    Noticed,
    ToolCallChanged,
    ToolCallStarted,
    UsageChanged,
)
from runtime.values.ids_and_time import utc_now

Output = Literal["text", "json", "stream-json"]
RESULT = "result"
"""The type of the last line of a stream."""
INTERRUPTED = 130
STATUSES: Mapping[str, int] = {
    "end_turn": 0,
    "error": 1,
    "max_tokens": 3,
    "max_turn_requests": 4,
    "refusal": 5,
    "schema": 6,
    "cancelled": INTERRUPTED,
}
"""Stop reason -> exit status: ACP's, an error, and a reply that does not fit `--schema`."""


@dataclass(slots=True)
class Result:
    """How a run ended, and what happened in it. value: the reply as JSON, where one was asked for."""

    session_id: str = ""
    stop_reason: str = ""
    error: str = ""
    value: object = None
    calls: dict[str, dict[str, object]] = field(default_factory=dict)
    trims: list[dict[str, object]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Printer(BareClient):
    """A `Client` at a terminal. quiet: the text of the answer is kept, for somebody who judges it first."""

    output: Output = "text"
    quiet: bool = False
    result: Result = field(default_factory=Result)
    message_id: str = ""
    begun: int = 0
    text: list[str] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def emit(self, session_id: str, event: Event) -> None:
        """Print it, or keep it."""
        if self.output == "stream-json":
            self._line(frame(str(next(self.numbers)), session_id, event, utc_now(), Origin()))
        match event:
            case AgentText():
                self._say(event.message_id, event.text)
            case ToolCallStarted():
                self.result.calls[event.call_id] = {"title": event.title, "status": event.status}
            case ToolCallChanged():
                self._call(event)
            case HistoryTrimmed():
                self._trim(event)
            case Noticed():
                self._note(f"{event.title}: {event.description}" if event.description else event.title)
            case UsageChanged():
                self.result.usage = {"used": event.used, "size": event.size}
            case _:
                pass

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """Nobody is there to answer, so nothing is allowed; the person hears of it."""
        self._note(
            f"{call.title}: not allowed; `--allow`, `--mode`, or a rule in [permissions], can allow it"
        )
        return PermissionOutcome()

    def last_message(self) -> str:
        """The text of the newest message: what stood before its tool calls is none of the answer."""
        return "".join(self.text[self.begun :])

    def close(self) -> None:
        """End the output: a last newline, or the JSON object."""
        if self.output == "text":
            if self.quiet and self.result.value is not None:
                self.text = [json.dumps(self.result.value, ensure_ascii=False, indent=2)]
                self._print(self.text[0])
            if self.text and not self.text[-1].endswith("\n"):
                self._print("\n")
            return
        kind: dict[str, object] = {"type": RESULT} if self.output == "stream-json" else {}
        self._line({**kind, **self._result()})

    def _result(self) -> dict[str, object]:
        result: dict[str, object] = {
            "sessionId": self.result.session_id,
            "stopReason": self.result.stop_reason,
            "text": "".join(self.text),
            "toolCalls": list(self.result.calls.values()),
            "historyTrimmed": self.result.trims,
            "notices": self.result.notices,
            "usage": self.result.usage,
        }
        if self.result.value is not None:
            result["value"] = self.result.value
        if self.result.error:
            result["error"] = self.result.error
        return result

    def _line(self, value: object) -> None:
        self._print(json.dumps(value, ensure_ascii=False) + "\n")

    def _print(self, text: str) -> None:
        with printing():
            print(text, end="")

    def _say(self, message_id: str, text: str) -> None:
        # Another message begins on a line of its own.
        if self.message_id not in ("", message_id) and not self.text[-1].endswith("\n"):
            text = f"\n{text}"
        if self.message_id != message_id:
            self.message_id, self.begun = message_id, len(self.text)
        self.text.append(text)
        if self.output == "text" and not self.quiet:
            self._print(text)

    def _call(self, event: ToolCallChanged) -> None:
        call = self.result.calls[event.call_id]
        call["status"] = event.status
        if event.status in ("completed", "failed"):
            self._note(f"{call['title']}: {event.status}")

    def _trim(self, event: HistoryTrimmed) -> None:
        self.result.trims.append(trim_facts(event))
        rows, turns = event.dropped_messages, event.kept_turns
        self._note(f"history trimmed: {rows} messages left out, {turns} turns kept ({event.reason})")

    def _note(self, text: str) -> None:
        self.result.notices.append(text)
        if self.output == "text":
            # Both may be one terminal: a notice begins on a line of its own.
            if self.text and not self.quiet and not self.text[-1].endswith("\n"):
                self._say(self.message_id, "\n")
            print(f"· {text}", file=sys.stderr, flush=True)


def stream_schema() -> Schema:
    """The JSON schema of a line of `--output stream-json`."""
    call = record({"title": TEXT, "status": one_of("pending", "in_progress", "completed", "failed")})
    result = record(
        {
            "type": one_of(RESULT),
            "sessionId": TEXT,
            "stopReason": one_of(*STATUSES, ""),
            "text": TEXT,
            "toolCalls": items(call),
            "historyTrimmed": items(OBJECT),
            "notices": items(TEXT),
            "usage": record({}, {"used": COUNT, "size": COUNT}),
        },
        {"value": {}, "error": TEXT},
    )
    frames = {name: schema for name, schema in event_schemas().items() if name != "events_lost"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `wholeturn run --output stream-json`",
        "oneOf": [*frames.values(), result],
    }
