"""Which files a person should be asked about: those that may hold secrets, and those that make others run.

By name and by ignore rules alone; what a file holds is not looked at. Names are compared as a file system
that knows no case would, with characters that cannot be seen left out.
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

from runtime.tools.sandbox.ignore_files import IGNORE_FILES, Absent, Layer, ignored, lines_of, rules
from runtime.tools.sandbox.roots import Place

SECRET_NAMES = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    ".vault-token",
    "credentials",
    "credentials.json",
    "secrets.json",
    "secrets.toml",
    "secrets.y*ml",
    "service-account*.json",
    "*.tfstate",
    "*.tfvars",
)
"""Globs over a file's name, in small letters."""

_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube"})
_HARMLESS = ("*.example", "*.sample", "*.template", "*.dist", "*.pub", ".env.example.*", "*.md")
_MADE_BY_TOOLS = (
    "*.log",
    "*.py[co]",
    "*.o",
    "*.so",
    "*.a",
    "*.class",
    "*.map",
    "*.lock",
    "*.tmp",
    "*.sw[op]",
)
"""What git ignores by name as well, and what holds no secret that somebody put there."""
_AGENT_IGNORE_FILES = (".aiignore", ".aiexclude", ".cursorignore")
"""Ignore files that are made for agents: whatever they name is kept from them."""
_ALL_IGNORE_FILES = (*IGNORE_FILES, *_AGENT_IGNORE_FILES)
_ABSENT = Absent(_ALL_IGNORE_FILES)

_RUN_BY_OTHERS = (
    ((".git", ".hg"), "git runs or follows what is written there"),
    ((".husky", ".githooks"), "git runs what is written there"),
    ((".vscode", ".idea", ".zed", ".devcontainer"), "the editor may run what is written there"),
    ((".github", ".gitlab-ci.yml", ".circleci"), "a build server runs what is written there"),
    ((".wholeturn.toml", ".wholeturn"), "it holds this agent's own settings"),
    ((".claude", ".cursor", ".gemini", ".codex", ".mcp.json"), "another agent may run what is written there"),
    ((".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".envrc"), "a shell runs it at its start"),
)
_UNSEEN = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f") | {
    chr(c) for c in range(0xFE00, 0xFE10)
}


@lru_cache(maxsize=1024)
def plain(name: str) -> str:
    """The name as a careless reader or file system takes it: no case, no marks that cannot be seen."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in folded if char.isprintable() and char not in _UNSEEN).rstrip(". ")


def hides_something(path: str) -> bool:
    """Whether it holds characters that cannot be seen, or that turn the order of those around them."""
    return not path.isprintable() or not _UNSEEN.isdisjoint(path)


def is_secret(place: Place, *, local: bool = False) -> bool:
    """Whether the file may hold secrets. Reads the ignore files above it: blocks on the disk.

    local: it is on a disk of this machine, whose folders tell at once when a file came into them.
    """
    return has_secret_name((*place.root.parts, *place.parts)) or _is_named_by_ignore_rules(place, local)


def has_secret_name(parts: Sequence[str]) -> bool:
    """By the names of a path alone."""
    names = [plain(part) for part in parts]
    if not _SECRET_FOLDERS.isdisjoint(names):
        return True
    return bool(names) and _matches(names[-1], SECRET_NAMES) and not _matches(names[-1], _HARMLESS)


def risk_of_writing(parts: Sequence[str]) -> str:
    """Why a change of this path is more than a change of a text; '' when it is not."""
    names = {plain(part) for part in parts}
    if parts and plain(parts[-1]) == "head":
        # With `objects` and `refs` beside it, git runs what the file `config` there says.
        return "git takes the folder of a file of this name for a repository"
    return next((why for risky, why in _RUN_BY_OTHERS if not names.isdisjoint(risky)), "")


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return _one_of(globs).match(name) is not None


@lru_cache(maxsize=8)
def _one_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))


def _is_named_by_ignore_rules(place: Place, local: bool) -> bool:
    """A rule of git speaks of the file itself, not of a folder around it or of everything in one.

    Build results and installed packages lie in ignored folders and hold no secrets; what is left out by
    its own name often does. An ignore file for agents counts for whole folders too.
    """
    root, path = str(place.root), "/".join(place.parts)
    own: list[Layer] = []
    agents: list[Layer] = []
    for depth in range(len(place.parts)):
        prefix = "".join(f"{part}/" for part in place.parts[:depth])
        if local and _ABSENT.all_in(os.path.join(root, prefix) if prefix else root):
            continue
        for name in _ALL_IGNORE_FILES:
            lines = lines_of(os.path.join(root, prefix + name))
            if not lines:
                continue
            if name in IGNORE_FILES:
                own.append(Layer(prefix, rules(line for line in lines if _names_something(line))))
            else:
                agents.append(Layer(prefix, rules(lines)))
    if not own and not agents:
        return False
    own_word = not _matches(plain(place.parts[-1]), _MADE_BY_TOOLS) and ignored(own, path, is_folder=False)
    if own_word or ignored(agents, path, is_folder=False):
        return True
    above = ("/".join(place.parts[:depth]) for depth in range(1, len(place.parts)))
    return any(ignored(agents, folder, is_folder=True) for folder in above)


def _names_something(rule: str) -> bool:
    return bool(rule.strip().rstrip("/").rpartition("/")[2].strip("*?! "))
