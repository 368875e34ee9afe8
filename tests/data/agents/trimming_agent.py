"""A small ACP agent that trims every fifth turn: what the client rigs are tried out on. Standard library only.

`--stray` lets it print a line that is no message, `--no-twin` lets it leave out the conformant notice.
"""

import itertools
import json
import re
import sys

IDS = itertools.count(1)


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session, variant, **fields):
    params = {"sessionId": session, "update": {"sessionUpdate": variant, **fields}}
    write({"method": "session/update", "params": params})


def ask(method, params):
    """Call the client and wait; nothing else arrives meanwhile in the tried conversations."""
    write({"id": f"agent-{next(IDS)}", "method": method, "params": params})
    return json.loads(sys.stdin.readline()).get("result") or {}


def read_notes(session, cwd, turn):
    call = f"call-{turn}"
    path = f"{cwd}/notes.txt"
    update(session, "tool_call", toolCallId=call, title="Read notes.txt", kind="read", status="pending")
    read = ask("fs/read_text_file", {"sessionId": session, "path": path})
    content = [{"type": "content", "content": {"type": "text", "text": read.get("content", "")}}]
    update(session, "tool_call_update", toolCallId=call, status="completed", content=content)


def tell_trim(session, turn):
    facts = {"droppedMessages": 8, "keptTurns": 3, "reason": "context token budget exceeded"}
    update(session, "history_trimmed", **facts)
    if "--no-twin" not in sys.argv:
        meta = {"wholeturn/history_trimmed": {**facts, "trimId": f"t-{turn}"}}
        update(session, "usage_update", used=900, size=4000, _meta=meta)


def prompt(params, cwd):
    session = params["sessionId"]
    turn = int(re.search(r"TURN-(\d+)", params["prompt"][0]["text"]).group(1))
    if turn % 5 == 0:
        tell_trim(session, turn)
    read_notes(session, cwd, turn)
    if turn == 3 and "--stray" in sys.argv:
        print("loading the model ...", flush=True)
    for piece in (f"ANSWER-{turn:05d}", " is", " here."):
        content = {"type": "text", "text": piece}
        update(session, "agent_message_chunk", messageId=f"m-{turn}", content=content)
    return {"stopReason": "end_turn"}


def main():
    cwd = ""
    capabilities = {"sessionCapabilities": {"close": {}}}
    for line in sys.stdin:
        message = json.loads(line)
        params = message.get("params") or {}
        cwd = params.get("cwd", cwd)
        answers = {
            "initialize": lambda: {"protocolVersion": 1, "agentCapabilities": capabilities},
            "session/new": lambda: {"sessionId": "s-1"},
            "session/close": lambda: {},
            "session/prompt": lambda params=params: prompt(params, cwd),
        }
        answer = answers.get(message.get("method"))
        if answer:
            write({"id": message["id"], "result": answer()})
        elif "id" in message and "method" in message:
            write({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    main()
