"""Prompt files: Markdown files that are commands. The user's own always count, a project's once trusted.

`prompts/NAME.md` in the folder of the settings, `.wholeturn/prompts/NAME.md` in a project. A file may begin
with a head between lines of `---`, with `description` and `argument-hint`.
"""

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acp_server.config.layers import printable
from acp_server.config.paths import config_dir
from acp_server.config.project_trust import are_prompts_trusted
from runtime.values.errors import ConfigError
from runtime.values.file_access import NO_WAITING, reading
from runtime.values.prompt import CustomCommand

FOLDER = "prompts"
PROJECT_FOLDER = ".wholeturn"
MOST_FILES = 100
MOST_BYTES = 64 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_HEAD = re.compile(r"---\n(.*?)\n?---\n(.*)", re.DOTALL)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Library:
    """The commands, and a sentence for each thing that was left out. digest: of all files, '' of none."""

    commands: tuple[CustomCommand, ...] = ()
    digest: str = ""
    left_out: tuple[str, ...] = ()


def commands_for(env: Mapping[str, str], cwd: Path, taken: Collection[str]) -> Library:
    """What counts in a session of that folder. Of two with one name the user's own counts. Never raises.

    taken: names of the commands that there are already.
    """
    own, project = own_prompts(env), project_prompts(cwd)
    left_out = [*own.left_out, *project.left_out]
    theirs = project.commands
    if theirs and not are_prompts_trusted(env, cwd, project.digest):
        count = f"{len(theirs)} prompt file{'s' if len(theirs) > 1 else ''}"
        left_out.append(
            f"left out: {count} of this project, "
            f"since it is not trusted; to permit: wholeturn trust {shlex.quote(str(cwd))}"
        )
        theirs = ()
    known: dict[str, CustomCommand] = {}
    for command in (*own.commands, *theirs):
        if command.name in taken or command.name in known:
            left_out.append(
                f"The prompt file {command.name}.md is left out: there is a /{command.name} already."
            )
            continue
        known[command.name] = command
    return Library(tuple(known.values()), left_out=tuple(left_out))


def own_prompts(env: Mapping[str, str]) -> Library:
    """The user's own."""
    try:
        return _library(config_dir(env) / FOLDER, None)
    except ConfigError:
        return Library()


def project_prompts(folder: Path) -> Library:
    """A project's, trusted or not. A file that is a link out of the project is none of its files."""
    return _library(folder / PROJECT_FOLDER / FOLDER, Path(os.path.realpath(folder)))


def _library(folder: Path, inside: Path | None) -> Library:
    names = sorted(name for name in _names(folder) if name.endswith(".md"))
    left_out = (
        [f"Only the first {MOST_FILES} prompt files of {folder} count."] if len(names) > MOST_FILES else []
    )
    commands, made = [], hashlib.sha256()
    for name in names[:MOST_FILES]:
        try:
            text = _text(folder / name, inside)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            left_out.append(f"The prompt file {printable(name)} is left out: {why}.")
            continue
        commands.append(command_of(name.removesuffix(".md"), text))
        for part in (name, text):
            made.update(b"%d:%b" % (len(part.encode()), part.encode()))
    return Library(tuple(commands), made.hexdigest() if commands else "", tuple(left_out))


def _names(folder: Path) -> Iterator[str]:
    try:
        yield from os.listdir(folder)
    except OSError:
        return


def _text(path: Path, inside: Path | None) -> str:
    """The file's text. Raises ValueError, with the reason, and OSError."""
    if not _NAME.fullmatch(path.stem):
        raise ValueError("a command's name has only letters, digits, - and _, and at most 40 of them")
    if inside is not None and not Path(os.path.realpath(path)).is_relative_to(inside):
        raise ValueError("it leads out of the project")
    # A pipe of that name must not hold anyone up.
    with reading(path, NO_WAITING) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8 text") from None
    if not text.strip():
        raise ValueError("it is empty")
    return text


def command_of(name: str, text: str) -> CustomCommand:
    """The command that a file's text is."""
    found = _HEAD.fullmatch(text)
    head, body = (_head(found[1]), found[2]) if found and found[2].strip() else ({}, text)
    first = next(line for line in body.splitlines() if line.strip())
    description = head.get("description") or first.strip("# ")
    return CustomCommand(
        name, _short(description) or name, _short(head.get("argument-hint", "")), body.strip()
    )


def _head(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip().strip("\"'") for key, _, value in lines}


def _short(text: str) -> str:
    return printable(" ".join(text.split()), _LONGEST)
