"""`wholeturn sessions list|show|export|import|delete|gc`: what is stored, without a server.

Output is printed as it is read, so that memory does not grow with the store. The form of an exported
session is in `acp_server/programs/transcripts/README.md`.
"""

import argparse
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, aclosing
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import trio

from acp_server.cli.output import described, printing, say, say_json
from acp_server.cli.stored_sessions import found, line_of, opened, warn_unreadable
from acp_server.config.paths import absolute, here
from acp_server.config.settings import add_options, options_of
from acp_server.programs.transcripts.lines import moment_before
from acp_server.programs.transcripts.show import between_text, turn_text
from acp_server.programs.transcripts.transfer import exported, imported, lines_of
from runtime.conversation.load_and_fork import read_state
from runtime.transcript.restore import outcome
from runtime.transcript.turn_record import TurnRecord, read_turns
from runtime.values.errors import ResourceNotFound, WholeturnError
from runtime.values.file_access import reading, writing
from runtime.values.stored import SessionRecord, Store


async def show_session(store: Store, given: argparse.Namespace) -> int:
    """Print the transcript. 1 when some of what is shown cannot be read."""
    record = await found(store, given.session)
    state = read_state(record.state)
    if not given.json and given.turn is None:
        say(line_of(record))
    number, damaged = 0, False
    async with aclosing(read_turns(store, record.session_id)) as turns:
        async for turn in turns:
            number += turn.prompt is not None
            if given.turn not in (None, number):
                continue
            for key in turn.aside.unreadable:
                damaged = True
                warn_unreadable(key, "not shown")
            if given.json:
                say_json(turn_facts(number, turn))
            elif turn.prompt is None and not any(one.shown() for one in turn.iterations):
                say_lines(between_text(turn))
            else:
                say_lines(turn_text(number, turn, state, whole=given.full))
    if given.turn is not None and not 1 <= given.turn <= number:
        raise ResourceNotFound(f"There is no turn {given.turn}: the session has {number}.")
    return 1 if damaged else 0


def say_lines(lines: Iterable[str]) -> None:
    """Lines on stdout."""
    for line in lines:
        say(line)


def turn_facts(number: int, turn: TurnRecord) -> dict[str, object]:
    """A turn for programs: its steps, and how it ended."""
    return {
        "turn": number if turn.prompt is not None else None,
        "turnId": turn.turn_id,
        "prompt": None if turn.prompt is None else turn.prompt.model_dump(mode="json"),
        "iterations": [
            {
                "trims": [trim.model_dump(mode="json") for trim in iteration.trims],
                "reply": None if (reply := iteration.shown()) is None else reply.model_dump(mode="json"),
                "tools": [tool.model_dump(mode="json") for tool in iteration.tools.values()],
            }
            for iteration in turn.iterations
        ],
        "trimsAfter": [trim.model_dump(mode="json") for trim in turn.trims_after],
        "outcome": outcome(turn) if turn.prompt is not None else None,
        "unreadable": turn.aside.unreadable,
    }


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


PAGE = 100
Work = Callable[[Store, argparse.Namespace], Awaitable[int]]


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "list, show, export, import and delete stored sessions"
    parser = commands.add_parser("sessions", help=text, description=described(text))
    actions = parser.add_subparsers(dest="action", required=True)

    def add(name: str, help_text: str, do: Work) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help_text, description=described(help_text))
        add_options(action)
        action.set_defaults(run=run, do=do)
        return action

    _list_flags(add("list", "the stored sessions, newest change first", list_sessions))
    show = add("show", "a session's transcript, with marks where history was trimmed", show_session)
    show.add_argument("session", help="its id")
    show.add_argument("--turn", type=int, metavar="N", help="this turn alone")
    show.add_argument("--full", action="store_true", help="tool results in full")
    show.add_argument("--json", action="store_true", help="a JSON object a turn")
    export = add("export", "write a session as JSON Lines", export_session)
    export.add_argument("session", help="its id")
    export.add_argument("--output", metavar="FILE", help="where to (default: stdout)")
    imports = add("import", "store a session that was exported, here or elsewhere", import_session)
    imports.add_argument("file", help="the file; - reads it from stdin")
    imports.add_argument(
        "--cwd", metavar="DIR", help="the folder it belongs to here (default: the one it had)"
    )
    delete = add("delete", "remove sessions for good", delete_sessions)
    delete.add_argument("session", nargs="+", help="their ids")
    gc = add("gc", "remove sessions that were not used for long; only tells which, without --yes", collect)
    gc.add_argument("--older-than", default="90d", metavar="AGE", help="12h, 30d, 8w (default: 90d)")
    gc.add_argument("--yes", action="store_true", help="really remove them")
    gc.add_argument("--json", action="store_true", help="as JSON")


def _list_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", metavar="DIR", help="only those of this folder")
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many")
    parser.add_argument("--json", action="store_true", help="a JSON object a session")


def run(given: argparse.Namespace) -> int:
    """Do what was asked. Returns the exit status."""
    do = cast("Work", given.do)

    async def work() -> int:
        async with opened(options_of(given)) as store:
            return await do(store, given)

    return trio.run(work)


async def records(store: Store, cwd: str | None = None) -> AsyncGenerator[SessionRecord, None]:
    """All sessions, newest change first, a page at a time."""
    cursor = None
    while True:
        page = await store.list_sessions(cwd=cwd, cursor=cursor, limit=PAGE)
        for record in page.sessions:
            yield record
        cursor = page.next_cursor
        if cursor is None:
            return


async def list_sessions(store: Store, given: argparse.Namespace) -> int:
    """Print one line a session."""
    cwd = None if given.cwd is None else absolute(given.cwd, here())
    left = given.limit
    async with aclosing(records(store, cwd)) as all_records:
        async for record in all_records:
            if left is not None and left <= 0:
                break
            left = None if left is None else left - 1
            if given.json:
                say_json(facts(record))
            else:
                say(line_of(record))
    return 0


def facts(record: SessionRecord) -> dict[str, object]:
    """A session's head for programs."""
    return {
        "sessionId": record.session_id,
        "cwd": record.cwd,
        "title": record.title,
        "createdAt": record.created_at,
        "updatedAt": record.updated_at,
    }


async def delete_sessions(store: Store, given: argparse.Namespace) -> int:
    """Remove the named ones. 1 when one of them was not there."""
    missing = 0
    for session_id in given.session:
        gone = await store.delete_session(session_id)
        missing += not gone
        say(f"{session_id}: {'deleted' if gone else 'is not stored'}")
    return 1 if missing else 0


async def collect(store: Store, given: argparse.Namespace) -> int:
    """Remove what is older, or tell what would be removed."""
    moment = moment_before(given.older_than)
    if given.yes:
        count = await store.purge(moment)
        if given.json:
            say_json({"before": moment, "removed": count})
        else:
            say(f"{count} sessions removed, last changed before {moment}.")
        return 0
    count = 0
    async with aclosing(records(store)) as all_records:
        async for record in all_records:
            if record.updated_at < moment:
                count += 1
                if given.json:
                    say_json(facts(record))
                else:
                    say(line_of(record))
    if not given.json:
        say(f"{count} sessions were last changed before {moment}. `--yes` removes them.")
    return 0
