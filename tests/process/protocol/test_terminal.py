"""The server in a terminal, on files and without an input: what a person sees who just types its name."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_server import __main__
from tests.process.homes import Home
from tests.process.terminals import CTRL_C, CTRL_D, Terminal, terminal

SERVER = [sys.executable, "-m", "acp_server"]
AT_ONCE = 10.0
"""Seconds: a moment, and much for a machine under load, where modules may still be loaded at that time."""
READY = b"Ctrl-D ends it"
INITIALIZE = {"jsonrpc": "2.0", "method": "initialize", "params": {"protocolVersion": 1}, "id": 1}


@pytest.fixture
def shown() -> Iterator[Terminal]:
    """A terminal; it must be left as it was."""
    with terminal() as made:
        yield made


def ended(process: "subprocess.Popen[bytes]", keys: bytes, shown: Terminal) -> int:
    """Press the keys; the exit status of a program that ends at once."""
    begun = time.monotonic()
    shown.type(keys)
    status = process.wait(timeout=20)
    assert time.monotonic() - begun < AT_ONCE
    return status


def new_session(home: Home, number: int) -> dict[str, Any]:
    """The request for a session."""
    params = {"cwd": str(home.work), "mcpServers": []}
    return {"jsonrpc": "2.0", "method": "session/new", "params": params, "id": number}


@pytest.mark.parametrize("arguments", [[], ["--store", "memory"]])
def test_a_person_is_told_what_this_is(home: Home, shown: Terminal, arguments: list[str]):
    process = shown.start([*SERVER, *arguments], home.env, home.spawn)
    shown.wait_for(READY)
    for word in (b"Agent Client Protocol", b"wholeturn demo", b"wholeturn editors", b"wholeturn --help"):
        assert word in shown.seen
    assert shown.frames() == []
    assert ended(process, CTRL_D, shown) == 0


@pytest.mark.parametrize("keys", [CTRL_D, CTRL_C], ids=["ctrl-d", "ctrl-c"])
@pytest.mark.parametrize("when", ["at once", "after the greeting", "in a session"])
def test_it_ends_at_once(home: Home, shown: Terminal, keys: bytes, when: str):
    process = shown.start(SERVER, home.env, home.spawn)
    shown.wait_for(READY)
    if when != "at once":
        shown.send(INITIALIZE)
        shown.answer(1)
    if when == "in a session":
        shown.send(new_session(home, 2))
        shown.answer(2)
    assert ended(process, keys, shown) in ((0, 130) if keys == CTRL_C else (0,))
    assert b"Traceback" not in drained(shown)


def drained(shown: Terminal) -> bytes:
    """All that was shown, of a program that has ended."""
    while select.select([shown.outer], [], [], 0)[0]:
        shown.seen += os.read(shown.outer, 65536)
    return shown.seen


@pytest.mark.parametrize("on", [(0, 1, 2), (0, 1), (0,)], ids=["all", "stdin and stdout", "stdin"])
def test_a_conversation_by_hand(home: Home, shown: Terminal, on: tuple[int, ...]):
    process = shown.start(SERVER, home.env, home.spawn, on=on)
    lines = Lines(shown, process)
    shown.send(INITIALIZE)
    assert lines.answer(1)["agentInfo"]["name"] == "wholeturn"
    shown.send(new_session(home, 2))
    session = lines.answer(2)["sessionId"]
    for number in (3, 4, 5):
        text = [{"type": "text", "text": f"hello {number}"}]
        params = {"sessionId": session, "prompt": text}
        shown.send({"jsonrpc": "2.0", "method": "session/prompt", "params": params, "id": number})
        assert lines.answer(number)["stopReason"] == "end_turn"
    spoken = "".join(lines.spoken())
    assert [f"you said hello {number}" in spoken for number in (3, 4, 5)] == [True, True, True]
    assert ended(process, CTRL_D, shown) == 0


class Lines:
    """What the server writes, on the terminal or on a pipe."""

    def __init__(self, shown: Terminal, process: "subprocess.Popen[bytes]") -> None:
        self._shown = shown
        self._pipe = process.stdout
        self._frames: list[dict[str, Any]] = []

    def answer(self, number: int) -> Any:
        """The result of the request with that id."""
        if self._pipe is None:
            return self._shown.answer(number)
        while not any(frame.get("id") == number for frame in self._frames):
            self._frames.append(json.loads(self._pipe.readline()))
        return self._frames[-1]["result"]

    def spoken(self) -> list[str]:
        """The pieces of the agent's texts."""
        frames = self._shown.frames() if self._pipe is None else self._frames
        updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
        return [u["content"]["text"] for u in updates if u["sessionUpdate"] == "agent_message_chunk"]


@pytest.fixture
def written(home: Home) -> Path:
    """A file of messages."""
    path = home.root / "messages.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (INITIALIZE, new_session(home, 2))))
    return path


def test_messages_in_a_file_are_answered_into_a_file(home: Home, written: Path):
    answers = home.root / "answers.jsonl"
    with written.open("rb") as stdin, answers.open("wb") as stdout:
        done = subprocess.run(
            SERVER,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=home.env,
            cwd=home.spawn,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    frames = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [frame["id"] for frame in frames if "id" in frame] == [1, 2]


def test_messages_in_a_file_with_the_answers_on_a_terminal(home: Home, shown: Terminal, written: Path):
    stdin = os.open(written, os.O_RDONLY)
    process = subprocess.Popen(
        SERVER, stdin=stdin, stdout=shown.inner, stderr=shown.inner, env=home.env, cwd=home.spawn
    )
    shown.process = process
    os.close(stdin)
    shown.answer(2)
    assert process.wait(timeout=20) == 0
    # Nobody types here, so nobody is told how.
    assert READY not in shown.seen


@pytest.mark.parametrize("how", ["<&-", "</dev/null", "<&- >&-"])
def test_without_an_input_it_ends_and_says_nothing(home: Home, how: str):
    command = ["sh", "-c", f'"$@" {how}', "-", *SERVER]
    done = subprocess.run(command, env=home.env, cwd=home.spawn, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_state_of_the_terminal_that_is_changed_is_noticed():
    with pytest.raises(AssertionError, match="non-blocking"), terminal() as made:
        os.set_blocking(made.inner, False)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), 130),
        (BaseExceptionGroup("", [BaseExceptionGroup("", [KeyboardInterrupt()])]), 130),
    ],
)
def test_an_interrupt_while_modules_are_loaded_is_no_traceback(
    error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(__main__, "_run", raising(error))
    assert __main__.main() == status


@pytest.mark.parametrize("error", [ExceptionGroup("", [ValueError()]), ValueError()])
def test_any_other_error_is_shown(error: BaseException, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(__main__, "_run", raising(error))
    with pytest.raises(type(error)):
        __main__.main()


def raising(error: BaseException) -> Callable[[list[str]], int]:
    """A server that fails."""

    def run(arguments: list[str]) -> int:
        raise error

    return run
