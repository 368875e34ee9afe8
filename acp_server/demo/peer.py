"""A small editor: starts the server as a child and talks to it, line by line. Knows no story.

A thread reads, so that a silent server is noticed after a while and a killed one at once.
"""

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

PATIENCE = 30.0
"""Seconds without a line before the server counts as stuck."""

Update = dict[str, object]


class Gone(Exception):
    """The server ended."""


class Peer:
    """One server process. on_update is called with each `session/update` as it comes."""

    def __init__(self, arguments: list[str], env: Mapping[str, str], cwd: Path) -> None:
        command = [sys.executable, "-m", "acp_server", *arguments]
        self.process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False
        )
        self.on_update: Callable[[Update], None] = lambda _: None
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._next_id = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None  # piped above
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, method: str, params: Mapping[str, object]) -> int:
        """Send a request; returns its id."""
        assert self.process.stdin is not None  # piped above
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._next_id

    def wait(self, request_id: int) -> dict[str, object]:
        """The result; updates on the way go to `on_update`. Raises Gone, RuntimeError for an error answer."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise Gone("the server does not answer") from None
            if not line:
                raise Gone("the server has ended")
            message = json.loads(line)
            if message.get("method") == "session/update":
                self.on_update(message["params"]["update"])
            elif message.get("id") == request_id:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return dict(message["result"])

    def call(self, method: str, params: Mapping[str, object]) -> dict[str, object]:
        """Send and wait."""
        return self.wait(self.send(method, params))

    def initialize(self) -> None:
        """The handshake of a client that shows trims itself."""
        meta = {"wholeturn": {"historyTrimmed": True}}
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {"_meta": meta}})

    def kill(self) -> None:
        """As if the power had gone."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> int:
        """End the server as an editor does: close its input. Returns its exit status."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            return self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.returncode
