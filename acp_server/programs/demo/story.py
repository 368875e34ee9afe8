"""What is asked in the demonstration, and what the scripted model answers. Made from the files of a folder.

The model's lines are written here; the tool calls in between are real and run in the server.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TEXT_ENDINGS = (
    ".py",
    ".md",
    ".toml",
    ".txt",
    ".rst",
    ".js",
    ".ts",
    ".go",
    ".rs",
    ".c",
    ".h",
    ".java",
    ".rb",
    ".sh",
)
LARGEST = 200_000
FILES = 6
SEEN = 5000
"""Files that are looked at: the demonstration may stand in a home folder."""
SKIPPED = ("node_modules", "__pycache__", "venv", "dist", "build", "target")
LINES = 40
"""Lines of a file that a turn of the story reads."""
SLOW = "This answer comes slowly, word by word, so that there is time to pull the plug in the middle of it. "


@dataclass(frozen=True, slots=True)
class Act:
    """One prompt of the story. kill: the process is killed while it answers."""

    prompt: str
    replies: tuple[dict[str, object], ...]
    kill: bool = False


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file the story can talk about: path below the folder, its lines."""

    path: str
    lines: tuple[str, ...]

    @property
    def opening(self) -> str:
        """Its first line with words, short enough to quote."""
        line = next(
            (line.strip(" #/*\"'-=<!>") for line in self.lines if line.strip(" #/*\"'-=<!>")), "nothing"
        )
        return line if len(line) <= 60 else f"{line[:59]}…"


def find_files(folder: Path) -> list[TextFile]:
    """Some readable text files, the largest below the limit first: they fill a context soonest."""
    found = []
    for path in itertools.islice(walk(folder), SEEN):
        size = path.lstat().st_size
        if path.suffix in TEXT_ENDINGS and 400 <= size <= LARGEST and not path.is_symlink():
            found.append((size, path))
    found.sort(key=lambda pair: (-pair[0], pair[1]))
    texts = (text_file(path, folder) for _, path in found)
    return list(itertools.islice((text for text in texts if text is not None), FILES))


def walk(folder: Path) -> Iterator[Path]:
    """All files below, hidden folders and installed packages left out."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED)
        yield from (Path(place, name) for name in sorted(names) if not name.startswith("."))


def text_file(path: Path, folder: Path) -> TextFile | None:
    """The file's lines; None when it is not UTF-8."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return TextFile(str(path.relative_to(folder)), tuple(lines))


def make_story(files: Sequence[TextFile]) -> list[Act]:
    """About twelve prompts. The one that is killed is asked again, and answered, by another process."""
    first, *others = files
    acts = [look_around(files), *(read(file) for file in (first, *others[:3]))]
    acts += [search(first), Act("How would you explain that to a new colleague?", (say(explanation(first)),))]
    killed = Act("Now write it all up, at length.", (slow_reply(),), kill=True)
    again = Act("You were cut off. Where did you stop?", (say(CUT_OFF),))
    acts += [killed, again, *(read(file) for file in (others[3:] or files[:2])[:2])]
    return [*acts, compare(files), Act("What was my first question today?", (say(HONEST),))]


CUT_OFF = (
    "My last answer was interrupted: what I see ends in the middle of a sentence, with a line that says so. "
    "What you saw of it is kept; I can go on from there."
)
HONEST = (
    "I can't see it any more: my view starts with a line saying that earlier turns were left out to fit the "
    "context window. The editor still shows them, and so does the stored transcript."
)


def say(text: str) -> dict[str, object]:
    """A plain answer, in a few pieces."""
    words = text.split(" ")
    pieces = [" ".join(words[at : at + 6]) + " " for at in range(0, len(words), 6)]
    return {"text": pieces, "chunk_delay": 0.02}


def call(name: str, **arguments: object) -> dict[str, object]:
    """A tool call."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def look_around(files: Sequence[TextFile]) -> Act:
    """The folder itself."""
    names = ", ".join(file.path for file in files[:3])
    return Act(
        "What is in this folder?",
        (call("list_dir", path="."), say(f"Among others: {names}. Shall I look into one of them?")),
    )


def read(file: TextFile) -> Act:
    """One file."""
    answer = (
        f"{file.path} has {len(file.lines)} lines and opens with “{file.opening}”. I read the first {LINES}."
    )
    return Act(
        f"Read {file.path}. What is it?", (call("read_file", path=file.path, limit=LINES), say(answer))
    )


def search(file: TextFile) -> Act:
    """A word of a file, everywhere."""
    words = [word for word in file.opening.split() if word.isalpha() and len(word) > 3]
    word = words[0] if words else "the"
    return Act(
        f"Where does “{word}” occur?",
        (
            call("search_text", pattern=word, max_results=20),
            say(f"The list above has the places; {file.path} is one of them."),
        ),
    )


def explanation(file: TextFile) -> str:
    """A longer answer without tools."""
    return (
        f"Start with {file.path}: it is the longest of what we read. Its first line says “{file.opening}”. "
        "Read it from the top once, then follow the names it uses into the other files; each of them is "
        "short enough to be read in one go. Where two files disagree, trust the one that is tested."
    )


def slow_reply() -> dict[str, object]:
    """An answer that takes long enough to be killed in."""
    return {"text": [f"{word} " for word in (SLOW * 6).split()], "chunk_delay": 0.05}


def compare(files: Sequence[TextFile]) -> Act:
    """Two tools at once."""
    pair = (files * 2)[:2] if isinstance(files, list) else list(files[:2])
    calls = [{"name": "read_file", "arguments": {"path": file.path, "limit": LINES // 2}} for file in pair]
    names = " and ".join(file.path for file in pair)
    return Act(
        f"Compare {names}.", ({"calls": calls}, say("Both were read again, side by side, in one step."))
    )
