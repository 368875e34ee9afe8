"""Ends process groups when the program that started them is gone without a word. Standard library only.

A process of its own, in a session of its own. Its input has a line for each group: `+1234` when one was
started, `-1234` when it has ended. At the end of the input, which the death of the program brings, the groups
that are left are ended.
"""

import os
import signal
import sys
import time

GRACE = 0.5
"""Seconds that a group has to end by itself: its own input has ended as well."""


def main() -> None:
    """Read to the end, then end what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    left: set[int] = set()
    for line in sys.stdin.buffer:
        group = int(line[1:])
        (left.add if line.startswith(b"+") else left.discard)(group)
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = {group for group in left if sent(group, number)}
        if left and number is signal.SIGTERM:
            time.sleep(GRACE)


def sent(group: int, number: signal.Signals) -> bool:
    """Signal a group. False when there is none any more."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
