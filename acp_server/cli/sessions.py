"""`wholeturn sessions list|show|export|import|delete|gc`: what is stored, without a server.

Output is printed as it is read, so that memory does not grow with the store.
"""

import argparse
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

import trio

from acp_server.cli.output import say, say_json
from acp_server.cli.parser import described
from acp_server.cli.session_files import export_session, import_session
from acp_server.cli.session_show import show_session
from acp_server.cli.stored import line_of, opened
from acp_server.config.options import add_options, options_of
from acp_server.config.paths import absolute, here
from acp_server.transcripts.ages import moment_before
from runtime.stored import SessionRecord, Store

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
