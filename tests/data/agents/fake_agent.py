"""A small ACP agent for the tests of the script player: what it does, a prompt's first word says.

Standard library only, so that it starts fast. `--fault NAME` makes it misbehave from the start.
"""

import json
import os
import signal
import subprocess
import sys
import time

OUT = sys.stdout.buffer


def raw(data):
    OUT.write(data)
    OUT.flush()


def send(**message):
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def update(session, **fields):
    send(method="session/update", params={"sessionId": session, "update": fields})


def say(session, text):
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def ask(session, method, **params):
    """A request to the client; gives its reply."""
    send(id=f"ask-{method}", method=method, params={"sessionId": session, **params})
    return json.loads(sys.stdin.buffer.readline())


def words(session, rest):
    for word in rest.split():
        say(session, word + " ")
        update(session, sessionUpdate="usage_update", used=1, size=2)


def read(session, rest):
    reply = ask(session, "fs/read_text_file", path=rest)
    say(session, reply["result"]["content"] if "result" in reply else f"error {reply['error']['code']}")


def shuffled(session, rest):
    for title in rest.split():
        update(session, sessionUpdate="tool_call", toolCallId=title, title=title)


def both(session, rest):
    """Two requests at once, answered in any order."""
    send(id=1, method="fs/read_text_file", params={"sessionId": session, "path": "/a"})
    send(id=2, method="session/request_permission", params={"sessionId": session, "options": []})
    replies = [json.loads(sys.stdin.buffer.readline()) for _ in range(2)]
    say(session, json.dumps({str(reply["id"]): reply.get("result", reply.get("error")) for reply in replies}))


def environment(session, rest):
    say(session, f"{os.environ.get(rest, '-')} {os.getcwd()}")


def stray(session, rest):
    raw(rest.encode() + b"\n")


def large(session, rest):
    say(session, "x" * int(rest))


def silent(session, rest):
    time.sleep(600)


def leave(session, rest):
    """Leaves a child in its group behind, which holds the file named."""
    with open(rest, "w") as held:
        os.set_inheritable(held.fileno(), True)
        subprocess.Popen(
            [sys.executable, "-ISc", "import time; time.sleep(600)"],
            close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )


def die(session, rest):
    sys.stderr.write("about to die\n")
    sys.stderr.flush()
    os._exit(int(rest))


def torn(session, rest):
    raw(b'{"jsonrpc":"2.0","met')
    os._exit(0)


def deaf(session, rest):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


DO = {
    each.__name__: each
    for each in (words, read, shuffled, both, environment, stray, large, silent, leave, die, torn, deaf)
}


def answer(message):
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": 1, "agentCapabilities": {"loadSession": False}}
    if method == "session/new":
        return {"sessionId": "s-1"}
    if method == "session/prompt":
        verb, _, rest = params["prompt"][0]["text"].partition(" ")
        DO[verb](params["sessionId"], rest)
        return {"stopReason": "end_turn"}
    return None


def main():
    if "--fault" in sys.argv:
        sys.stderr.write("no licence\n")
        sys.exit(3)
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            send(id=None, error={"code": -32700, "message": "Parse error"})
            continue
        if "id" in message:
            result = answer(message)
            missing = {"error": {"code": -32601, "message": "Method not found"}}
            send(id=message["id"], **({"result": result} if result is not None else missing))


main()
