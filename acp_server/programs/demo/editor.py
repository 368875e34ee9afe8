"""A small editor that starts the server and talks to it line by line, and what it prints. Knows no story.

A thread reads, so that a silent server is noticed after a while and a killed one at once. 80 columns, no
colours needed.
"""

import json
import queue
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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


WIDTH = 79
INDENT = "     "
PROMPT = 24
"""Characters of a prompt in the table: what the other columns leave of the line."""


@dataclass(slots=True)
class TurnRow:
    """A line of the closing table. Tokens are what the client's meter showed."""

    number: int
    prompt: str
    calls: int = 0
    before: int = 0
    after: int = 0
    dropped: int = 0
    kept: int | None = None
    end: str = ""

    @property
    def note(self) -> str:
        """The last column."""
        if self.kept is not None:
            return f"{counted(self.dropped, 'row')} / {counted(self.kept, 'turn')}"
        return "" if self.end == "end_turn" else self.end


@dataclass(slots=True)
class Screen:
    """Prints updates as they come and keeps what the table needs."""

    rows: list[TurnRow] = field(default_factory=list)
    titles: dict[object, str] = field(default_factory=dict)
    text: str = ""
    notices: int = 0
    used: int = 0
    chunks: int = 0

    def begin(self, prompt: str) -> None:
        """A prompt is sent."""
        self.rows.append(TurnRow(len(self.rows) + 1, prompt, before=self.used))
        self.text, self.chunks = "", 0
        print()
        print(textwrap.fill(f"{len(self.rows):3d} > {prompt}", WIDTH, subsequent_indent=INDENT), flush=True)

    def update(self, update: Mapping[str, object]) -> None:
        """One `session/update`."""
        kind = update["sessionUpdate"]
        if kind == "agent_message_chunk":
            self.chunks += 1
            self.text += text_of(update)
        elif kind == "tool_call":
            self.flush()
            self.titles[update["toolCallId"]] = str(update["title"])
            self.rows[-1].calls += 1
        elif kind == "tool_call_update" and update.get("status") in ("completed", "failed"):
            say(f"[{update['status']}] {self.titles.get(update['toolCallId'], '')}")
        elif kind == "history_trimmed":
            self.trimmed(update)
        elif kind == "usage_update":
            self.used = int(str(update["used"]))
            self.rows[-1].after = self.used

    def trimmed(self, update: Mapping[str, object]) -> None:
        """A notice, as a client gets it."""
        self.flush()
        row = self.rows[-1]
        row.dropped += int(str(update["droppedMessages"]))
        row.kept = int(str(update["keptTurns"]))
        self.notices += 1
        messages = counted(int(str(update["droppedMessages"])), "message")
        say(f"history_trimmed: {messages} left out, {counted(row.kept, 'turn')} kept")
        say(f"({update['reason']})")

    def flush(self) -> None:
        """Print the text so far."""
        if self.text.strip():
            say(self.text.strip())
        self.text = ""

    def end(self, reason: str) -> None:
        """The turn is over."""
        self.flush()
        self.rows[-1].end = reason


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def text_of(update: Mapping[str, object]) -> str:
    """The text of a chunk."""
    content = update.get("content")
    return str(content.get("text", "")) if isinstance(content, dict) else ""


def say(text: str) -> None:
    """A paragraph, indented and wrapped."""
    for line in text.splitlines():
        print(textwrap.fill(line, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT), flush=True)


def plain(text: str) -> None:
    """A paragraph from the left edge, wrapped."""
    print(textwrap.fill(text, WIDTH), flush=True)


def headline(text: str) -> None:
    """A line that stands out."""
    print(f"\n--- {text} ".ljust(WIDTH, "-"), flush=True)


def table(rows: list[TurnRow], limit: int) -> None:
    """The closing table."""
    headline(f"what happened (budget {limit} tokens)")
    print(
        f"{'turn':>4}  {'prompt':<{PROMPT}} {'calls':>5} {'tokens before > after':>21}  {'left out / kept'}"
    )
    for row in rows:
        prompt = row.prompt if len(row.prompt) <= PROMPT else f"{row.prompt[: PROMPT - 1]}…"
        tokens = f"{row.before:10d} > {row.after:8d}"
        print(f"{row.number:4d}  {prompt:<{PROMPT}} {row.calls:5d} {tokens}  {row.note}".rstrip())
