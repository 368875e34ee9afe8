"""Drives an ACP agent over stdio and measures it: `Agent(argv, ...)` is one agent process.

Single-threaded but for the memory sampler: the agent's own requests are answered while waiting for a
response. Times are monotonic seconds, comparable with those of the mock model on the same machine.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

Json = dict[str, Any]


class AgentError(Exception):
    """An error response, a time-out or the agent's end."""


@dataclass(slots=True)
class Turn:
    """One prompt as the client saw it. updates: (time, the update)."""

    start: float
    end: float = 0.0
    stop: str = ""
    updates: list[tuple[float, Json]] = field(default_factory=list)

    @property
    def wall(self) -> float:
        """Seconds from sending the prompt to having its response."""
        return self.end - self.start

    @property
    def text(self) -> str:
        """The agent's visible answer."""
        chunks = (u for _, u in self.updates if u.get("sessionUpdate") == "agent_message_chunk")
        return "".join(u["content"].get("text", "") for u in chunks)


def process_tree(root: int) -> list[int]:
    """The process ids of a process and its descendants; only the root where there is no /proc."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = entry.read_text().rsplit(")", 1)[1].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def status_bytes(pid: int, key: str) -> int:
    """A size from /proc/PID/status in bytes; 0 when it cannot be read."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return 0


class Memory:
    """The peak of a process and its descendants, by sampling every 0.2 s and the system's own mark."""

    def __init__(self, pid: int, *, sampling: bool) -> None:
        self._pid, self._peak = pid, 0
        self._done = threading.Event()
        if sampling:
            threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while not self._done.wait(0.2):
            self._look()

    def _look(self) -> None:
        resident = sum(status_bytes(pid, "VmRSS") for pid in process_tree(self._pid))
        self._peak = max(self._peak, resident)

    def peak_bytes(self) -> int:
        """The larger of the sampled sum over the process tree and the agent's own high-water mark."""
        self._look()
        return max(self._peak, status_bytes(self._pid, "VmHWM"))

    def cpu_seconds(self) -> float:
        """CPU time of the agent itself so far; 0 where it cannot be read."""
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def stop(self) -> None:
        """No more samples."""
        self._done.set()


class Lines:
    """The lines of a pipe, as they come."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._ready: deque[bytes] = deque()
        self._partial: list[bytes] = []

    def next(self, deadline: float) -> bytes:
        """The next line without its end. Raises AgentError when there is none until the deadline."""
        while not self._ready:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._fd], [], [], left)[0]:
                raise AgentError("timeout")
            data = os.read(self._fd, 1 << 16)
            if not data:
                raise AgentError("the agent closed its output")
            self._partial.append(data)
            if b"\n" in data:
                *whole, rest = b"".join(self._partial).split(b"\n")
                self._ready.extend(whole)
                self._partial = [rest]
        return self._ready.popleft()


class Agent:
    """One agent process. `capabilities`: what the client offers, nothing by default."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        *,
        env: Mapping[str, str] | None = None,
        capabilities: Json | None = None,
        sample_memory: bool = False,
        timeout: float = 120.0,
    ) -> None:
        self.cwd, self.timeout, self.capabilities = cwd, timeout, capabilities or {}
        self.updates: list[tuple[float, Json]] = []
        self.noise: list[bytes] = []
        self._next_id = 0
        self.spawned = time.monotonic()
        self._process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())
        self.memory = Memory(self._process.pid, sampling=sample_memory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, message: Json) -> None:
        """One message, in full."""
        data = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        stdin = self._process.stdin
        assert stdin is not None
        try:
            while data:
                data = data[os.write(stdin.fileno(), data) :]
        except OSError as error:
            raise AgentError(f"agent gone: {error}") from None

    def receive(self, deadline: float) -> Json:
        """The next message; a line that is no JSON object goes to `noise`."""
        while True:
            line = self._lines.next(deadline)
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message
            self.noise.append(line)

    def start(self, method: str, params: Json) -> int:
        """Send a request; its id."""
        self._next_id += 1
        self.send({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    def wait(self, ident: int) -> Json:
        """The result of the request; updates are kept, the agent's own requests answered meanwhile."""
        deadline = time.monotonic() + self.timeout
        while True:
            message = self.receive(deadline)
            if "method" in message:
                self._take(message)
            elif message.get("id") == ident:
                if "error" in message:
                    raise AgentError(json.dumps(message["error"])[:600])
                result: Json = message.get("result") or {}
                return result

    def _take(self, message: Json) -> None:
        if "id" in message:
            self.send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        elif message["method"] == "session/update":
            self.updates.append((time.monotonic(), message["params"]["update"]))

    def call(self, method: str, params: Json) -> Json:
        """Send a request and wait for its result."""
        return self.wait(self.start(method, params))

    def first_update(self, method: str, params: Json) -> float:
        """Seconds from sending a request to the first update behind it; its result is not waited for."""
        self.updates = []
        begun = time.monotonic()
        self.start(method, params)
        while not self.updates:
            message = self.receive(begun + self.timeout)
            if "error" in message:
                raise AgentError(json.dumps(message["error"])[:600])
            if "method" in message:
                self._take(message)
        return self.updates[0][0] - begun

    def initialize(self) -> float:
        """Seconds from spawning to the answer."""
        info = {"name": "acp_drive", "version": "1"}
        more = {"clientCapabilities": self.capabilities, "clientInfo": info}
        self.call("initialize", {"protocolVersion": 1, **more})
        return time.monotonic() - self.spawned

    def new(self) -> tuple[float, str]:
        """Seconds from spawning to the answer of session/new, and the session's id."""
        result = self.call("session/new", {"cwd": str(self.cwd), "mcpServers": []})
        return time.monotonic() - self.spawned, result["sessionId"]

    def prompt(self, session: str, text: str) -> Turn:
        """One turn."""
        self.updates = []
        turn = Turn(time.monotonic())
        block = {"type": "text", "text": text}
        result = self.call("session/prompt", {"sessionId": session, "prompt": [block]})
        turn.end, turn.stop, turn.updates = time.monotonic(), result["stopReason"], self.updates
        return turn

    def close(self) -> None:
        """Close its input and see it out; after three seconds by force, with all that it started."""
        self.memory.stop()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3)
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
