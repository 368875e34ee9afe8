"""The editors that have a page here: what goes into their settings, with the command of this installation.

A page is Markdown; its first fenced block is the configuration, so that the two cannot differ. Knows no
editor's own files and writes none.
"""

import json
import shlex
from collections.abc import Callable
from importlib.resources import files
from typing import NamedTuple

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
    text = files(__package__).joinpath(f"{editor.name}.md").read_text(encoding="utf-8")
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
