"""`wholeturn sessions export` and `import`: a session as a file, see `acp_server/transcripts/README.md`."""

import argparse
import os
import sys
from contextlib import AbstractContextManager, aclosing
from functools import partial
from pathlib import Path
from typing import BinaryIO

from acp_server.cli.output import printing, say
from acp_server.cli.stored import found, warn_unreadable
from acp_server.config.paths import absolute, here
from acp_server.transcripts.transfer import exported, imported, lines_of
from runtime.errors import WholeturnError
from runtime.file_access import reading, writing
from runtime.stored import SessionRecord, Store


async def export_session(store: Store, given: argparse.Namespace) -> int:
    """Write the lines to a file or to stdout. 1 when steps that cannot be read were left out."""
    record = await found(store, given.session)
    if given.output is None:
        with printing():
            left_out = await write_all(store, record, sys.stdout.buffer)
    else:
        left_out = await to_file(store, record, Path(absolute(given.output, here())))
    for key in left_out:
        warn_unreadable(key, "left out")
    return 1 if left_out else 0


async def to_file(store: Store, record: SessionRecord, path: Path) -> list[str]:
    """The lines in a new file that only its owner can read; it is there whole or not at all. Gives the keys
    of steps that were left out.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with writing(beside, os.O_CREAT | os.O_EXCL, 0o600) as file:
            left_out = await write_all(store, record, file)
        beside.replace(path)
        return left_out
    except OSError as error:
        raise WholeturnError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)


async def write_all(store: Store, record: SessionRecord, file: BinaryIO) -> list[str]:
    """All lines. Gives the keys of steps that were left out."""
    left_out: list[str] = []
    async with aclosing(exported(store, record, lambda entry: left_out.append(entry.key))) as lines:
        async for line in lines:
            file.write(line)
    return left_out


async def import_session(store: Store, given: argparse.Namespace) -> int:
    """Store the file's session, and say under which id."""
    cwd = "" if given.cwd is None else absolute(given.cwd, here())
    tell = partial(print, file=sys.stderr)
    try:
        with source(given.file) as file:
            record = await imported(store, lines_of(file), cwd=cwd, tell=tell)
    except OSError as error:
        raise WholeturnError(f"{given.file}: cannot be read: {error.strerror}") from None
    say(record.session_id)
    return 0


def source(name: str) -> AbstractContextManager[BinaryIO]:
    """The file of that name, or stdin for `-`."""
    return open(0, "rb", closefd=False) if name == "-" else reading(name)
