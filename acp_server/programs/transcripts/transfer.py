"""A stored session to lines, and lines to a stored session. Memory does not grow with the session."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import BinaryIO

import trio

from acp_server.programs.transcripts.lines import (
    LONGEST_LINE,
    BadExport,
    header_line,
    is_readable,
    read_header,
    read_step,
    step_line,
)
from runtime.conversation.load_and_fork import new_session_id
from runtime.transcript.turn_record import PAGE
from runtime.values.stored import SessionRecord, Store, StoredEntry

BATCH_BYTES = 4 * 1024 * 1024


async def exported(
    store: Store, record: SessionRecord, damaged: Callable[[StoredEntry], None] = lambda entry: None
) -> AsyncGenerator[bytes, None]:
    """The lines of a session as it is now: what is added meanwhile is left out.

    damaged: gets each step that cannot be read, which is left out too; all of them before the first line.
    """
    steps, last, bad = await counted(store, record.session_id)
    for entry in bad.values():
        damaged(entry)
    yield header_line(record, steps)
    async for entry in entries_up_to(store, record.session_id, last):
        if entry.seq not in bad:
            yield step_line(entry)


async def counted(store: Store, session_id: str) -> tuple[int, int, dict[int, StoredEntry]]:
    """How many entries can be read, the seq of the last one of all, and those that cannot be, by seq."""
    steps = last = 0
    bad: dict[int, StoredEntry] = {}
    while page := await store.entries(session_id, after=last, limit=PAGE):
        found = {entry.seq: entry._replace(payload=b"") for entry in page if not is_readable(entry)}
        bad |= found
        steps, last = steps + len(page) - len(found), page[-1].seq
    return steps, last, bad


async def entries_up_to(store: Store, session_id: str, last: int) -> AsyncGenerator[StoredEntry, None]:
    """The entries with seq <= last, in order."""
    after = 0
    while after < last and (page := await store.entries(session_id, after=after, limit=PAGE)):
        for entry in page:
            if entry.seq <= last:
                yield entry
        after = page[-1].seq


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, one at a time. Raises BadExport for one that is too long to be taken in."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise BadExport(f"Line {number}: longer than {LONGEST_LINE} bytes.")
        if line.strip():
            yield line


async def imported(
    store: Store, lines: Iterable[bytes], *, cwd: str = "", tell: Callable[[str], None]
) -> SessionRecord:
    """Store an exported session; returns its head. cwd: its folder here, '' for the one it had.

    Raises BadExport and StoreError; nothing of it is left behind then. tell: gets what is worth knowing.
    """
    source = iter(lines)
    first = next(source, None)
    if first is None:
        raise BadExport("The file is empty.")
    header = read_header(first)
    record = header.record._replace(cwd=cwd or header.record.cwd)
    if await store.session(record.session_id) is not None:
        record = record._replace(session_id=new_session_id())
        tell(f"{header.record.session_id} is taken; the session is now {record.session_id}.")
    await store.create_session(record)
    try:
        count, last_key = await _append_all(store, record.session_id, source)
        if count != header.steps:
            raise BadExport(f"The file is not whole: it has {count} of {header.steps} steps.")
        # A store leaves out what it has already, so the last step then stands too early.
        if count and await store.position(record.session_id, last_key) != count:
            raise BadExport("A key stands more than once in the file.")
    except BaseException:
        with trio.CancelScope(shield=True):
            await store.delete_session(record.session_id)
        raise
    return record


async def _append_all(store: Store, session_id: str, lines: Iterator[bytes]) -> tuple[int, str]:
    """Store the steps in batches; how many there were, and the key of the last one."""
    batch: list[StoredEntry] = []
    size = count = 0
    key = ""
    for number, line in enumerate(lines, 2):
        batch.append(read_step(line, number))
        key = batch[-1].key
        size, count = size + len(line), count + 1
        if len(batch) >= PAGE or size >= BATCH_BYTES:
            await store.append(session_id, batch)
            batch, size = [], 0
    if batch:
        await store.append(session_id, batch)
    return count, key
