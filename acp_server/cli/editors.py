"""`wholeturn editors [NAME]`: the editors that have a page here, each with this installation's command in it.

A page is Markdown; its first fenced block is the configuration, so that the two cannot differ. Knows no
editor's own files and writes none.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from acp_server.cli.output import described, say
from runtime.values.errors import WholeturnError

COMMAND = "wholeturn"
_FENCE = "```"


class Editor(NamedTuple):
    """An editor. file: where its configuration goes, for people. slot: the text around the command, which
    stands in the page once; `{}` in it is the command as the language writes it.
    """

    name: str
    title: str
    file: str
    slot: str
    quote: Callable[[str], str]


def quoted(path: str) -> str:
    """A string of JSON, Lua and Emacs Lisp alike, as long as the path has no control characters."""
    return json.dumps(path, ensure_ascii=False)


def shell_quoted(path: str) -> str:
    """A word for a shell that hands it to a shell."""
    return shlex.quote(shlex.quote(path))


EDITORS: tuple[Editor, ...] = (
    Editor("zed", "Zed", "settings.json of Zed", '"command": {}', quoted),
    Editor("jetbrains", "JetBrains IDEs", "~/.jetbrains/acp.json", '"command": {}', quoted),
    Editor("codecompanion", "Neovim with CodeCompanion", "your Neovim configuration", "{{ {} }}", quoted),
    Editor("avante", "Neovim with avante", "your Neovim configuration", " command = {}", quoted),
    Editor("agent-shell", "Emacs with agent-shell", "your init file of Emacs", ":command {}\n", quoted),
    Editor("toad", "Toad", "a command line", "toad acp {} .", shell_quoted),
    Editor("acpx", "acpx", "~/.acpx/config.json", '"argv": [{}]', quoted),
)


def page(editor: Editor, command: str = COMMAND) -> str:
    """The editor's page, with that command in the configuration."""
    text = files("acp_server.programs.editors").joinpath(f"{editor.name}.md").read_text(encoding="utf-8")
    before, block, after = _parts(text)
    shipped, wanted = (editor.slot.format(editor.quote(word)) for word in (COMMAND, command))
    return before + block.replace(shipped, wanted, 1) + after


def configuration(editor: Editor, command: str = COMMAND) -> str:
    """What goes into the editor's settings, alone; ends with a line feed."""
    return _parts(page(editor, command))[1]


def _parts(text: str) -> tuple[str, str, str]:
    """The page up to the first fenced block, the block, and the rest."""
    start = text.index("\n", text.index(_FENCE)) + 1
    end = text.index(_FENCE, start)
    return text[:start], text[start:end], text[end:]


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    text = "how to set up your editor: its page, or the configuration alone"
    parser = commands.add_parser("editors", help=text, description=described(text))
    names = [editor.name for editor in EDITORS]
    parser.add_argument("name", nargs="?", choices=names, help="which one; without a name all are listed")
    parser.add_argument("--snippet", action="store_true", help="print the configuration alone")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print it. Returns the exit status."""
    editor = next((one for one in EDITORS if one.name == given.name), None)
    if editor is None:
        say("\n".join(f"{one.name:<15}{one.title}: {one.file}" for one in EDITORS))
        return 0
    show = configuration if given.snippet else page
    say(show(editor, own_command()).removesuffix("\n"))
    return 0


def own_command() -> str:
    """The whole path of the command `wholeturn` that belongs to this interpreter, links left as they are.

    The one that was called comes first: a link in `~/.local/bin` outlives an update. Raises WholeturnError.
    """
    called, beside = Path(sys.argv[0]), Path(sys.executable).with_name(COMMAND)
    candidates = [called.absolute()] if called.name == COMMAND else []
    candidates += [beside, *filter(None, [_on_path()])]
    found = next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)
    if found is None:
        raise WholeturnError(
            f"There is no command {COMMAND} beside {sys.executable}: install it, e.g. with pipx or uv."
        )
    return str(found)


def _on_path() -> Path | None:
    found = shutil.which(COMMAND)
    return Path(found).absolute() if found else None
