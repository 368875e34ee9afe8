"""Stands between a client and an agent: hands the agent's output on unchanged and keeps a copy of it.

`python tee_agent.py COPY COMMAND...`. What a real client makes of a line is its own affair; the copy shows
what was really on the wire. Standard library only.
"""

import os
import signal
import subprocess
import sys


def main(copy: str, command: list[str]) -> int:
    """Run the agent to its end; its exit status is ours."""
    with open(copy, "ab", buffering=0) as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _: process.send_signal(got))
        while data := os.read(process.stdout.fileno(), 1 << 16):
            log.write(data)
            while data:
                data = data[os.write(1, data) :]
        return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
