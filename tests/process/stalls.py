"""A disk that stands still under a server: a library in front of its syncs, or its store's thread held up.

Knows no test. `python tests/process/stalls.py FILE ARGUMENTS` is a server whose commits wait while FILE is
there.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int delayed(const char *name, int descriptor) {
    const char *while_there = getenv("STALL_WHILE");
    struct timespec pause = {0, 10000000};
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    while (while_there && access(while_there, F_OK) == 0) nanosleep(&pause, NULL);
    return real(descriptor);
}

int fsync(int descriptor) { return delayed("fsync", descriptor); }
int fdatasync(int descriptor) { return delayed("fdatasync", descriptor); }
"""
PAUSE_SECONDS = 0.01


def compiler() -> str | None:
    """The machine's C compiler, if it has one."""
    return shutil.which("cc")


def library(folder: Path) -> Path:
    """The library that holds up every sync of a process while the file that STALL_WHILE names is there."""
    made, source = folder / "stall.so", folder / "stall.c"
    source.write_text(SOURCE)
    subprocess.run(
        [str(compiler()), "-shared", "-fPIC", "-o", str(made), str(source), "-ldl"], check=True, timeout=60
    )
    return made


def command(sign: Path) -> list[str]:
    """How a server is started whose store's thread waits while `sign` is there; for want of a compiler."""
    return [sys.executable, str(Path(__file__)), str(sign)]


def serve(sign: Path) -> int:
    """Be that server."""
    from acp_server.__main__ import main
    from runtime.store.sqlite.writer import Writer

    carry_out = Writer._carry_out

    def held_up(self, works):
        while sign.exists():
            time.sleep(PAUSE_SECONDS)
        return carry_out(self, works)

    Writer._carry_out = held_up  # type: ignore[method-assign]
    return main()


if __name__ == "__main__":
    where, sys.argv[1:] = Path(sys.argv[1]), sys.argv[2:]
    sys.path.insert(0, os.fspath(Path(__file__).parents[2]))
    sys.exit(serve(where))
