"""Which guidance files there are, and what stands in them now. Blocks on the disk; knows no model.

One file a folder, the first that is found: tools that share a file keep copies of it under other names. The
user's own comes first, then the folders from the repository's down to the session's, then the other folders.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from runtime.ports import ToolContext
from runtime.setup.guidance import Guidance, orientation, room
from runtime.setup.redaction import Redaction
from runtime.tools.files.encoding import Decoder, detect
from runtime.tools.sandbox.paths import in_thread, quote
from runtime.tools.sandbox.roots import locate, opened_file
from runtime.tools.sandbox.sensitive_files import has_secret_name, is_secret
from runtime.trimming.model_context import HistoryKeeper, adopt
from runtime.values.errors import ToolError
from runtime.values.events import Noticed, Severity
from runtime.values.file_access import NO_WAITING, opened

NAMES = (
    *("AGENTS.md", "CLAUDE.md", "GEMINI.md", "AGENT.md", ".rules", ".cursorrules", ".windsurfrules"),
    *(".clinerules", ".github/copilot-instructions.md"),
)
"""Of one folder the first of these that is there counts."""
OWN_NAME = "AGENTS.md"
"""In the folder of the user's settings."""
MOST_BYTES = 256 * 1024
"""Of one file; more is as good as none to a model."""
MOST_FOLDERS = 20
"""Folders above the session's that are looked into."""

TITLE = "Guidance files"


@dataclass(frozen=True, slots=True)
class Found:
    """What there is, in the order in which a model reads it; a sentence for each file that was left out."""

    files: tuple[Guidance, ...] = ()
    left_out: tuple[str, ...] = ()


class GuidanceFiles:
    """The guidance of one session, looked at anew before each turn. own: the folder of settings."""

    def __init__(self, own: Path | None = None) -> None:
        self._own = own
        self._told: tuple[str, ...] = ()
        self._before: tuple[Guidance, ...] | None = None

    async def before_turn(self, keeper: HistoryKeeper, context: ToolContext) -> list[Noticed]:
        """Hand over what stands there now; returns what the person is to be told.

        Files that are as they were change no byte of what the model is sent.
        """
        found = await in_thread(lambda _: find(self._own, context))
        found = replace(found, files=tuple(redacted(file, keeper.setup.redaction) for file in found.files))
        if found.files != keeper.setup.guidance:
            adopt(keeper, replace(keeper.setup, guidance=found.files))
        before, self._before = self._before, found.files
        told = [*self._anew(before, found.files), *self._remarks(keeper, found)]
        return [Noticed(severity, TITLE, text) for severity, text in told]

    def _anew(
        self, before: tuple[Guidance, ...] | None, now: tuple[Guidance, ...]
    ) -> Iterator[tuple[Severity, str]]:
        if before is None or before == now:
            return
        known = set(before)
        names = [file.name for file in now if file not in known]
        yield "info", f"Read anew: {', '.join(names)}." if names else "There is less of it than before."

    def _remarks(self, keeper: HistoryKeeper, found: Found) -> Iterator[tuple[Severity, str]]:
        """What is not in the request, once for each change of it."""
        setup = keeper.setup
        size = room(setup.profile, setup.route)
        cut = orientation(found.files, size, setup.counter).cut
        remarks = (
            *(f"{name} is cut: guidance may take {size:,} tokens with this model." for name in cut),
            *found.left_out,
        )
        told, self._told = self._told, remarks
        yield from (("warning", remark) for remark in remarks if remark not in told)


def redacted(file: Guidance, redaction: Redaction) -> Guidance:
    """The file without secrets that the settings describe."""
    text = redaction.text(file.text)
    return replace(file, text=text, length=file.length + len(text) - len(file.text))


def find(own: Path | None, context: ToolContext) -> Found:
    """All files that count now. Never raises."""
    files: list[Guidance] = []
    left_out: list[str] = []
    for name, read in sources(own, context):
        try:
            file = read()
        except (ToolError, OSError) as error:
            why = error.message if isinstance(error, ToolError) else error.strerror
            left_out.append(f"{name} is left out: {why}")
            continue
        if file is not None and all(file.text != other.text for other in files):
            files.append(file)
    return Found(tuple(files), tuple(left_out))


Source = tuple[str, Callable[[], Guidance | None]]


def sources(own: Path | None, context: ToolContext) -> Iterator[Source]:
    """The files that are there, by name, with what reads each."""
    if own is not None and os.path.lexists(own / OWN_NAME):
        yield str(own / OWN_NAME), partial(own_file, own / OWN_NAME)
    for folder in (*above(context.cwd), context.cwd, *context.roots[1:]):
        name = next((name for name in NAMES if os.path.lexists(folder / name)), None)
        if name is not None:
            roots = context.roots if folder == context.cwd or folder in context.roots else (folder,)
            inner = replace(context, cwd=folder, roots=roots, granted=())
            shown = os.path.relpath(folder / name, context.cwd)
            yield shown, partial(project_file, name, shown, inner)


def above(cwd: Path) -> list[Path]:
    """The folders from the one that a repository begins in down to the one above `cwd`; none without one.

    A repository of another user's is none: whoever may write to /tmp could otherwise speak to all below it.
    """
    folders: list[Path] = []
    for folder in (cwd, *cwd.parents)[:MOST_FOLDERS]:
        if folder != cwd:
            folders.append(folder)
        if os.path.lexists(folder / ".git"):
            return folders[::-1] if is_ours(folder) else []
    return []


def is_ours(folder: Path) -> bool:
    """Whether the folder is the user's."""
    return not hasattr(os, "getuid") or os.stat(folder).st_uid == os.getuid()


def own_file(path: Path) -> Guidance | None:
    """The user's own file; a link may lead anywhere."""
    with opened(path, os.O_RDONLY | NO_WAITING) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ToolError("it is no regular file")
        return guidance(str(path), content(descriptor), own=True)


def project_file(name: str, shown: str, context: ToolContext) -> Guidance | None:
    """A project's file. Raises ToolError when it leads out of the folders, or to what may hold secrets."""
    place = locate(name, context)
    # A name that git ignores is no secret here: many keep their own notes for agents out of the repository.
    led_elsewhere = place.path != Path(os.path.realpath(context.cwd), name)
    if has_secret_name(place.parts) or (led_elsewhere and is_secret(place)):
        raise ToolError("it leads to a file that may hold secrets")
    with opened_file(place) as descriptor:
        return guidance(quote(shown), content(descriptor), own=False)


def content(descriptor: int) -> bytes:
    """The beginning of a file, at most MOST_BYTES and one more."""
    data = b""
    while len(data) <= MOST_BYTES and (piece := os.read(descriptor, MOST_BYTES + 1 - len(data))):
        data += piece
    return data


def guidance(name: str, data: bytes, *, own: bool) -> Guidance | None:
    """The file as text; None when there is nothing in it. Raises ToolError for what is no text."""
    encoding = detect(data)
    if encoding is None:
        raise ToolError("it is no text")
    whole = len(data) <= MOST_BYTES
    text = Decoder(encoding).feed(data[encoding.mark : MOST_BYTES], final=whole).replace("\r\n", "\n")
    return Guidance(name, text, own, len(text) + (not whole)) if text.strip() else None
