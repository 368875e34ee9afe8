"""What the demonstration prints: live updates, then the table. 80 columns, no colours needed."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

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
