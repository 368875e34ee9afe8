"""`wholeturn script FIXTURE... [-- AGENT COMMAND]`: play fixtures, report the first difference of each."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import trio

from acp_server.programs.script.parse import ScriptError, parse
from acp_server.programs.script.play import closing, outcome_text, play
from acp_server.programs.script.stage import Options
from runtime.values.errors import WholeturnError
from runtime.values.file_access import reading

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "script",
        help="play scripted JSON-RPC fixtures against this or any ACP agent",
        usage="wholeturn script [options] FIXTURE... [-- AGENT COMMAND]",
        description="Play scripted JSON-RPC fixtures against an ACP agent and report the first difference "
        "of each. A FIXTURE is a file of JSON lines, or a folder of *.jsonl files. The agent is this "
        "program unless a command follows --.",
    )
    _add_options(parser)
    # argparse cannot tell what stands before a `--` from what stands behind: all words are taken here
    # and sorted by `run`.
    parser.add_argument("words", metavar="FIXTURE", nargs=argparse.REMAINDER)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Play and print. Returns 0 when all passed, 1 when one failed, 2 for a wrong command line."""
    words, command = _split(given.words)
    rest = argparse.ArgumentParser(
        prog="wholeturn script", add_help=False, argument_default=argparse.SUPPRESS
    )
    _add_options(rest)
    rest.add_argument("fixtures", metavar="FIXTURE", nargs="*")
    given = rest.parse_intermixed_args(words, given)
    fixtures = getattr(given, "fixtures", ())
    if not fixtures:
        rest.error("name at least one fixture")
    options = Options(
        command=tuple(command) or (sys.executable, "-m", "acp_server"),
        timeout=given.timeout,
        cwd=_folder(given.cwd),
        env=dict(given.env or ()),
        trace=_print if given.verbose else lambda line: None,
    )
    try:
        return _play_all(list(_fixtures(fixtures)), options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is None:
            return INTERRUPTED
        raise


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=_seconds, default=10.0, metavar="SECONDS", help="for a step that states none (10)"
    )
    parser.add_argument("--cwd", help="the folder $CWD for sessions (default: a new one, removed later)")
    parser.add_argument(
        "--env", action="append", type=_pair, metavar="KEY=VALUE", help="environment of the agent; repeatable"
    )
    parser.add_argument("--verbose", action="store_true", help="show all traffic")


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return list(words), []
    at = list(words).index("--")
    return list(words[:at]), list(words[at + 1 :])


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return name, value


def _folder(given: str | None) -> Path | None:
    if given is None:
        return None
    path = Path(given).resolve()
    if not path.is_dir():
        raise WholeturnError(f"{given}: there is no such folder.")
    return path


def _fixtures(given: Sequence[str]) -> Iterator[Path]:
    for name in given:
        path = Path(name)
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.glob("*.jsonl"))
        if not found:
            raise WholeturnError(f"{name}: no *.jsonl files there.")
        yield from found


def _play_all(fixtures: Sequence[Path], options: Options) -> int:
    failed = 0
    for path in fixtures:
        try:
            with reading(path) as file:
                text = file.read().decode()
            script = parse(text, str(path), str(path.resolve().parent))
            outcome = trio.run(play, script, options)
            text, passed = outcome_text(outcome), outcome.failure is None
        except ScriptError as error:
            text, passed = f"FAIL {error.message}", False
        except UnicodeDecodeError:
            text, passed = f"FAIL {path}: not UTF-8", False
        except OSError as error:
            text, passed = f"FAIL {path}: cannot be read ({error.strerror})", False
        failed += not passed
        _print(text)
    _print(closing(len(fixtures) - failed, failed))
    return 1 if failed else 0


def _print(line: str) -> None:
    sys.stdout.write(line.encode(sys.stdout.encoding or "utf-8", "replace").decode(errors="replace") + "\n")
    sys.stdout.flush()
