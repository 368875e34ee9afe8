"""Standard input and output at descriptor level, in real processes."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

ECHO = """
import ctypes, os, subprocess, sys
if sys.stdout is not None:
    sys.stdout.write("early ")
from acp_server.wire.stdio import take_stdio
fds = take_stdio()
import trio
from acp_server.wire.streams import open_stream
print("print")
if sys.__stdout__ is not None:
    sys.__stdout__.write("old stdout\\n")
os.write(1, b"fd 1\\n")
ctypes.CDLL(None).puts(b"from C")
ctypes.CDLL(None).fflush(None)
subprocess.run(["sh", "-c", "cat; echo child"], check=True)
assert not os.get_inheritable(fds.fd_in) and not os.get_inheritable(fds.fd_out)
async def main():
    async with open_stream(fds) as stream:
        assert os.get_blocking(2)
        while data := await stream.receive_some():
            await stream.send_all(data)
trio.run(main)
"""


# What is printed before the descriptors are taken must still be in the buffer by then.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def run(how: str, sent: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run ECHO by a shell line; `AGENT` stands for the program."""
    return subprocess.run(
        ["sh", "-c", how.replace("AGENT", '"$0" -c "$1"'), sys.executable, ECHO],
        input=sent,
        capture_output=True,
        timeout=60,
        check=False,
        env=BUFFERED,
    )


STRAY = [b"early", b"print", b"old stdout", b"fd 1", b"from C", b"child"]


def test_nothing_but_the_wire_reaches_stdout() -> None:
    sent = b"one\ntwo\n" + os.urandom(300_000)
    done = run("AGENT", sent)
    assert (done.returncode, done.stdout) == (0, sent)
    assert [word for word in STRAY if word not in done.stderr] == []


def test_an_output_that_is_also_stderr_loses_nothing() -> None:
    done = run("AGENT 2>&1", b"x" * 300_000)
    assert done.returncode == 0
    assert done.stdout.count(b"x") == 300_000
    assert [word for word in STRAY if word not in done.stdout] == []


@pytest.mark.parametrize("how", ["AGENT <&-", "AGENT </dev/null", "AGENT <&- 2>&-"])
def test_no_input_is_an_input_that_has_ended(how: str) -> None:
    done = run(how)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("how", ["AGENT >&-", "AGENT >/dev/null", "AGENT >&- 2>&-", "AGENT 2>&-"])
def test_outputs_may_be_closed(how: str) -> None:
    done = run(how, b"text")
    assert done.returncode == 0
    assert done.stdout == (b"text" if how == "AGENT 2>&-" else b"")
    assert b"Traceback" not in done.stderr


def test_regular_files(tmp_path: Path) -> None:
    sent = os.urandom(300_000)
    (tmp_path / "in").write_bytes(sent)
    done = run(f"AGENT <{tmp_path}/in >{tmp_path}/out")
    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == sent


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals of this kind")
def test_a_terminal_keeps_its_blocking_mode() -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", ECHO]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as child:
        try:
            os.write(ours, b"hello\n")
            seen = b""
            while seen.count(b"hello") < 2:  # the terminal's own echo, and ours
                assert select.select([ours], [], [], 60)[0], seen
                seen += os.read(ours, 1000)
            assert os.get_blocking(theirs)
            os.write(ours, b"\x04")
            assert child.wait(60) == 0
        finally:
            child.kill()
    os.close(ours)
    os.close(theirs)
