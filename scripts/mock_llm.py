"""A scriptable streaming model server on 127.0.0.1, for tests and measuring.

It speaks OpenAI chat completions and responses, Anthropic messages (`mock_shapes`) and Ollama's chat API
(`mock_ollama`).

What it answers is set by a JSON config, at start (--config) or while running (POST /_mock/config).
GET /_mock/log?since=N gives one line a request, with the monotonic times at which the request had arrived
in full (`received`) and the last byte of the answer was written (`sent`). Standard library only.

A prompt that carries TURN-00007 is answered by `reply_text(7, reply_chars)`: what a client must have got
can be computed afterwards.
"""

import argparse
import itertools
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from mock_faults import SECONDS_STATED, Cut, frames, names, spoilt
from mock_ollama import Ollama
from mock_reply import Json, Reply, arguments_for, pairs, tokens, turn_of
from mock_shapes import SHAPES, Shape
from mock_text import reply_text

DEFAULTS: Json = {
    "reply_chars": 2000,  # length of a text reply
    "chunks": 40,  # the number of streamed pieces it comes in
    "chunk_delay": 0.0,  # seconds between two pieces
    "tool_loop": 0,  # tool calls made for each user message before the text reply
    "tool_name": "read_file",  # the tool that is called, when it is offered
    "tool_path": "notes.txt",  # the file that it is asked to read
    "limit_tokens": 0,  # above this many prompt tokens: a context-overflow 400
    "strict": True,  # a broken tool-call pair is a 400, as with the real providers
    "faults": [],  # one a request, "" for none: a status, or a name of mock_faults
    "slow_seconds": 1.0,  # before the first byte of an answer with the fault "slow"
    "log_bodies": False,  # keep each request's messages in the log
    "log_pieces": False,  # keep the time at which each streamed piece was written
    "model": "mock-model",
}


APIS: dict[str, Shape] = {**SHAPES, "/api/chat": Ollama()}
"""The end of a path -> what is spoken there."""


class State:
    """What all requests share: the config, the faults that are left of it, and the log."""

    def __init__(self, config: Json) -> None:
        self.config = {**DEFAULTS, **config}
        self.faults = names(self.config)
        self.entries: list[Json] = []
        self.serial = itertools.count(1)
        self.lock = threading.Lock()

    def plan(self, config: Json, body: Json, ident: str) -> tuple[str, Json | None]:
        """Text or a call: as many calls as the config wants since the last user message, then text."""
        messages = body.get("messages") or []
        users = [i for i, message in enumerate(messages) if message.get("role") == "user"]
        since = sum(message.get("role") == "tool" for message in messages[users[-1] :] if users)
        offered = {tool["function"]["name"]: tool for tool in body.get("tools") or []}
        tool = offered.get(config["tool_name"])
        if tool and since < config["tool_loop"]:
            arguments = json.dumps(arguments_for(tool, config["tool_path"]))
            function = {"name": config["tool_name"], "arguments": arguments}
            return "", {"id": f"call_{ident}", "type": "function", "function": function}
        return reply_text(turn_of(messages), config["reply_chars"]), None

    def change(self, config: Json) -> Json:
        with self.lock:
            self.config.update(config)
            if "faults" in config:
                self.faults = names(config)
            return self.config

    def next_fault(self) -> str:
        with self.lock:
            return self.faults.pop(0) if self.faults else ""

    def record(self, entry: Json) -> None:
        with self.lock:
            entry["n"] = len(self.entries)
            self.entries.append(entry)


class Handler(BaseHTTPRequestHandler):
    """One connection, kept alive."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    state: State

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *_: object) -> None:
        """Nothing: the log is asked for by GET."""

    def answer(self, status: int, value: object, **headers: str) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/_mock/log":
            since = int(parse_qs(url.query).get("since", ["0"])[0])
            self.answer(200, self.state.entries[since:])
        elif url.path.endswith("/models"):
            model = {"id": self.state.config["model"], "object": "model", "created": 1, "owned_by": "mock"}
            self.answer(200, {"object": "list", "data": [model]})
        else:
            self.answer(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        raw = self.read_body()
        received = time.monotonic()
        body = json.loads(raw or b"{}")
        path = urlsplit(self.path).path
        shape = next((shape for end, shape in APIS.items() if path.endswith(end)), None)
        if path == "/_mock/config":
            self.answer(200, self.state.change(body))
        elif shape:
            self.complete(shape, body, {"received": received, "bytes": len(raw), "path": path})
        else:
            self.answer(404, {"error": {"message": f"no such path: {path}"}})

    def complete(self, shape: Shape, body: Json, entry: Json) -> None:
        config, ident = dict(self.state.config), f"r{next(self.state.serial):06d}"
        chat = shape.as_chat(body)
        messages = chat["messages"]
        count = tokens(messages) + tokens(chat.get("tools") or [])
        entry |= {"messages": len(messages), "tokens": count, "status": 200}
        entry["pairs"] = shape.fault(body) or pairs(messages)
        if config["log_bodies"]:
            entry["body"] = messages
        try:
            text, call = self.state.plan(config, chat, ident)
            entry["call"] = bool(call)
            self.respond(shape, body, entry, shape.reply(config, ident, text, call, count))
        except Cut:
            entry["status"] = "cut"
            self.close_connection = True
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
        except (BrokenPipeError, ConnectionResetError):
            entry["status"] = "client went away"
        finally:
            entry["sent"] = time.monotonic()
            self.state.record(entry)

    def respond(self, shape: Shape, body: Json, entry: Json, reply: Reply) -> None:
        config = reply.config
        limit = config["limit_tokens"]
        fault = self.state.next_fault()
        if limit and entry["tokens"] > limit:
            entry["status"] = "overflow"
            self.answer(400, shape.overflow(entry["tokens"], limit))
        elif config["strict"] and entry["pairs"] != "ok":
            entry["status"] = "bad pairs"
            self.answer(400, shape.refusal(entry["pairs"]))
        elif fault.isdecimal():
            entry["status"] = int(fault)
            headers = {"Retry_After": SECONDS_STATED} if fault == "429" else {}
            self.answer(int(fault), shape.refusal(f"the fault {fault}"), **headers)
        elif body.get("stream"):
            entry |= {"fault": fault} if fault else {}
            self.stream(config, entry, spoilt(fault, reply), fault)
        else:
            self.answer(200, reply.whole())

    def stream(self, config: Json, entry: Json, reply: Reply, fault: str = "") -> None:
        if fault == "slow":
            time.sleep(config["slow_seconds"])
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if fault == "page" else reply.content_type)
        if fault == "gzip":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        written = entry.setdefault("pieces", [])
        for piece, data in frames(fault, reply):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            if piece and config["log_pieces"]:
                written.append([len(piece), time.monotonic()])
            if piece and config["chunk_delay"]:
                time.sleep(config["chunk_delay"])
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    """The listener."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that went away is no fault here
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="0: any free one; the address is printed")
    parser.add_argument("--config", default="{}", help="JSON text, over the defaults: " + ", ".join(DEFAULTS))
    options = parser.parse_args()
    Handler.state = State(json.loads(options.config))
    server = Server(("127.0.0.1", options.port), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
