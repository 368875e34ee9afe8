"""The baseline: the least that can be called an ACP agent. Standard library only.

One loop, one thread, one provider (OpenAI chat completions at BARE_AGENT_URL), one tool. It keeps its whole
history in a list and sends all of it each time: nothing is stored, nothing is trimmed, nothing is checked.
"""

import http.client
import itertools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]

TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a text file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
}


def write(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def update(session: str, variant: str, **fields: object) -> None:
    params = {"sessionId": session, "update": {"sessionUpdate": variant, **fields}}
    write({"method": "session/update", "params": params})


class Model:
    """A kept-alive connection to the provider."""

    def __init__(self, url: str) -> None:
        self.url = urlsplit(url)
        self.connection = http.client.HTTPConnection(self.url.hostname or "127.0.0.1", self.url.port)

    def stream(self, messages: list[Json]) -> Iterator[Json]:
        """The deltas of one answer."""
        body = json.dumps({"model": "m", "stream": True, "messages": messages, "tools": [TOOL]})
        headers = {"Content-Type": "application/json"}
        self.connection.request("POST", self.url.path + "/v1/chat/completions", body, headers)
        response = self.connection.getresponse()
        if response.status != 200:
            raise OSError(response.read().decode(errors="replace"))
        for line in response:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    yield choice["delta"]


class Agent:
    """Sessions as lists of messages."""

    def __init__(self, url: str) -> None:
        self.model = Model(url)
        self.sessions: dict[str, tuple[str, list[Json]]] = {}
        self.ids = itertools.count(1)

    def initialize(self, _: Json) -> Json:
        return {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "bare", "version": "1"}}

    def session_new(self, params: Json) -> Json:
        ident = f"s{next(self.ids)}"
        self.sessions[ident] = (params["cwd"], [])
        return {"sessionId": ident}

    def session_prompt(self, params: Json) -> Json:
        ident = params["sessionId"]
        cwd, messages = self.sessions[ident]
        text = "".join(block.get("text", "") for block in params["prompt"])
        messages.append({"role": "user", "content": text})
        while calls := self.answer(ident, messages):
            for call in calls:
                self.run(ident, cwd, messages, call)
        return {"stopReason": "end_turn"}

    def answer(self, ident: str, messages: list[Json]) -> list[Json]:
        """One model call, streamed through; the calls that it wants."""
        text: list[str] = []
        calls: list[Json] = []
        for delta in self.model.stream(messages):
            if piece := delta.get("content"):
                text.append(piece)
                update(ident, "agent_message_chunk", content={"type": "text", "text": piece})
            for part in delta.get("tool_calls") or []:
                if part["index"] == len(calls):
                    calls.append({"id": part["id"], "type": "function", "function": dict(part["function"])})
                else:
                    calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
        message: Json = {"role": "assistant", "content": "".join(text) or None}
        messages.append(message | ({"tool_calls": calls} if calls else {}))
        return calls

    def run(self, ident: str, cwd: str, messages: list[Json], call: Json) -> None:
        path = os.path.join(cwd, json.loads(call["function"]["arguments"])["path"])
        update(ident, "tool_call", toolCallId=call["id"], title=f"Read {path}", kind="read")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                result, status = file.read(), "completed"
        except OSError as error:
            result, status = str(error), "failed"
        content = [{"type": "content", "content": {"type": "text", "text": result}}]
        update(ident, "tool_call_update", toolCallId=call["id"], status=status, content=content)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def main() -> None:
    agent = Agent(os.environ["BARE_AGENT_URL"])
    methods = {
        "initialize": agent.initialize,
        "session/new": agent.session_new,
        "session/prompt": agent.session_prompt,
    }
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        try:
            write({"id": message["id"], "result": methods[message["method"]](message.get("params") or {})})
        except KeyError:
            write({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        except OSError as error:
            write({"id": message["id"], "error": {"code": -32603, "message": str(error)}})


if __name__ == "__main__":
    main()
