"""An MCP server on stdio in the standard library: `server.py BEHAVIOUR [PID_FILE]`. Written for tests.

good: tools `add`, `shout`, `picture`, `sleep`, `fail`, `env`, `grow`, `die`, `flood`; resources. `shout`
of "farewell" or "unended" exits with 5 right behind its answer, the second without a last line feed.
many: 1,000 tools in pages of 100. slow: answers `initialize` after SLOW seconds. hang: reads and never answers.
deaf: neither reads nor ends, ignores SIGTERM. crash: says `missing TOKEN` on stderr and exits with 3.
garbage: prints text instead of messages. chatty: writes 1 MB to stderr first, then is good.
parent: starts a child that would live on, then is good.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

TOOLS = {
    "add": ("Add two numbers.", {"a": {"type": "integer"}, "b": {"type": "integer"}}),
    "shout": ("Say it loudly.", {"text": {"type": "string"}}),
    "picture": ("A small picture.", {}),
    "sleep": ("Sleep.", {"seconds": {"type": "number"}}),
    "fail": ("Fail.", {}),
    "env": ("A variable.", {"name": {"type": "string"}}),
    "grow": ("Have one more tool.", {}),
    "die": ("Exit at once.", {}),
    "flood": ("Very much text.", {"size": {"type": "integer"}}),
    "cancelled": ("Which calls were cancelled.", {}),
}
LOOKING = ("add", "env")


class Server:
    def __init__(self, behaviour):
        self.behaviour = behaviour
        self.more = []
        self.cancelled = []
        self.lock = threading.Lock()

    def send(self, **message):
        with self.lock:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def run(self):
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("method") == "notifications/cancelled":
                self.cancelled.append(message["params"]["requestId"])
            if "id" in message and "method" in message:
                threading.Thread(target=self.answer, args=(message,), daemon=True).start()

    def answer(self, message):
        method, params = message["method"], message.get("params") or {}
        known = {
            "initialize": self.initialize,
            "ping": lambda params: {},
            "tools/list": self.tools,
            "tools/call": self.call,
            "resources/list": lambda params: {
                "resources": [{"uri": "test://notes", "name": "notes", "mimeType": "text/plain"}]
            },
            "resources/templates/list": lambda params: {
                "resourceTemplates": [{"uriTemplate": "test://day/{date}", "name": "day"}]
            },
            "resources/read": self.read,
        }
        if method not in known:
            self.send(id=message["id"], error={"code": -32601, "message": "no such method"})
            return
        said = params.get("arguments", {}).get("text")
        if said in ("farewell", "unended"):
            self.leave(message["id"], "" if said == "unended" else "\n")
        try:
            self.send(id=message["id"], result=known[method](params))
        except KeyError as error:
            self.send(id=message["id"], error={"code": -32602, "message": f"bad parameter {error}"})

    def leave(self, asked, end):
        note = {"jsonrpc": "2.0", "method": "notifications/message"}
        lines = [json.dumps({**note, "params": {"level": "info", "data": "x" * 1000}}) for _ in range(40)]
        lines.append(json.dumps({"jsonrpc": "2.0", "id": asked, "result": {"content": [text("good bye")]}}))
        os.write(2, b"leaving\n")
        os.write(1, ("\n".join(lines) + end).encode())
        os._exit(5)

    def initialize(self, params):
        if self.behaviour == "slow":
            time.sleep(float(os.environ["SLOW"]))
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "resources": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }

    def tools(self, params):
        if self.behaviour == "many":
            first = int(params.get("cursor", 0))
            page = [tool(f"tool_{n}", "One of very many.", {}) for n in range(first, first + 100)]
            return {"tools": page, **({"nextCursor": str(first + 100)} if first < 900 else {})}
        return {"tools": [tool(name, *facts) for name, facts in {**TOOLS, **dict(self.more)}.items()]}

    def read(self, params):
        if params["uri"] != "test://notes":
            raise KeyError("uri")
        return {"contents": [{"uri": "test://notes", "mimeType": "text/plain", "text": "buy milk"}]}

    def call(self, params):
        name, given = params["name"], params.get("arguments") or {}
        if name == "add":
            total = given["a"] + given["b"]
            return {"content": [text(str(total))], "structuredContent": {"sum": total}}
        if name == "shout":
            return {"content": [text(given["text"].upper())]}
        if name == "picture":
            return {"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]}
        if name == "sleep":
            time.sleep(given["seconds"])
        if name == "fail":
            return {"content": [text("it went wrong")], "isError": True}
        if name == "env":
            return {"content": [text(os.environ.get(given["name"], "(not set)"))]}
        if name == "grow":
            self.more.append((f"grown_{len(self.more)}", ("New.", {})))
            self.send(method="notifications/tools/list_changed")
        if name == "die":
            os._exit(7)
        if name == "flood":
            return {"content": [text("x" * given["size"])]}
        if name == "halves":
            return {"content": [text("cut \ud83d")]}
        if name == "broken":
            return None
        if name == "cancelled":
            return {"content": [text(json.dumps(self.cancelled))]}
        return {"content": [text("done")]}


def text(words):
    return {"type": "text", "text": words}


def tool(name, description, properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    hints = {"annotations": {"readOnlyHint": True}} if name in LOOKING else {}
    return {"name": name, "description": description, "inputSchema": schema, **hints}


def main():
    behaviour = sys.argv[1]
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a") as file:
            file.write(f"{os.getpid()}\n")
    if behaviour == "crash":
        sys.exit(crash())
    if behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if behaviour == "hang":
        sys.stdin.read()
    if behaviour == "garbage":
        print("Welcome to the test server!", flush=True)
        sys.stdin.read()
    if behaviour == "chatty":
        sys.stderr.write("chatter\n" * 125_000)
        sys.stderr.flush()
    if behaviour == "parent":
        child = subprocess.Popen([sys.executable, __file__, "deaf", *sys.argv[2:]])
        assert child.pid
    Server(behaviour).run()


def crash():
    print("starting up", file=sys.stderr)
    print("missing TOKEN", file=sys.stderr)
    return 3


main()
