"""What a project's own file may set: little before the user trusts it, all afterwards.

One small file a folder names the digest that was trusted, so that two commands at once cannot lose each
other's word; a changed project file has another digest and is untrusted again. What is let in untrusted is
a list: limits and retention, and a choice among agents, providers and models that the user's own settings
name. No address, command, path or code can pass, whatever keys come to the schema later.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from acp_server.config.check import MOST_FAULTS, more
from acp_server.config.layers import Key, Layer, Tree, key_text, leaves, printable, put, subtree, table
from acp_server.config.merge import IMPLIED_AGENT
from acp_server.config.models import pair_of
from acp_server.config.paths import config_dir
from runtime.values.errors import ConfigError
from runtime.values.file_access import read_text, writing
from runtime.values.profiles import BUILT_IN_CONTEXTS


class Trusted(NamedTuple):
    """A folder, links resolved, with what was trusted there: the sha256 of the project file as it was then,
    and of its prompt files; '' for none.
    """

    folder: str
    digest: str
    prompts: str = ""


def resolved(folder: str | Path) -> str:
    """The folder by its real name, whether it is there or not."""
    return os.path.realpath(folder)


def is_trusted(env: Mapping[str, str], folder: str | Path, digest: str) -> bool:
    """Whether the user trusted this content in this folder. An unreadable record is no trust."""
    found = _found(env, folder)
    return found is not None and bool(digest) and found.digest == digest


def are_prompts_trusted(env: Mapping[str, str], folder: str | Path, digest: str) -> bool:
    """The same for the folder's prompt files, all together."""
    found = _found(env, folder)
    return found is not None and bool(digest) and found.prompts == digest


def trust(env: Mapping[str, str], folder: str | Path, digest: str, prompts: str = "") -> None:
    """Remember it, over what was remembered of that folder. Raises ConfigError."""
    real = resolved(folder)
    record = _record(env, real)
    text = json.dumps({"folder": real, "sha256": digest, "prompts": prompts})
    try:
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = record.with_suffix(f".{os.getpid()}.new")
        with writing(new, mode=0o600) as file:
            os.chmod(new, 0o600)
            file.write(text.encode())
        os.replace(new, record)
    except OSError as error:
        raise ConfigError(f"{record.parent}: trust cannot be recorded: {error.strerror}") from error


def revoke(env: Mapping[str, str], folder: str | Path) -> bool:
    """Forget a folder; False if it was not trusted. Raises ConfigError."""
    record = _record(env, resolved(folder))
    try:
        record.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{record}: cannot be removed: {error.strerror}") from error
    return True


def trusted_folders(env: Mapping[str, str]) -> list[Trusted]:
    """Every folder that is remembered, by name."""
    found = [_read(record) for record in _records(env)]
    return sorted((entry for entry in found if entry), key=lambda entry: entry.folder)


def described(entry: Trusted) -> str:
    """One line of a list."""
    what = f"sha256 {entry.digest[:12]}…" if entry.digest else "its prompt files"
    return f"{printable(entry.folder, 4096)} ({what})"


def _found(env: Mapping[str, str], folder: str | Path) -> Trusted | None:
    real = resolved(folder)
    found = _read(_record(env, real))
    return found if found is not None and found.folder == real else None


def _records(env: Mapping[str, str]) -> Iterator[Path]:
    yield from (config_dir(env) / "trusted").glob("*.json")


def _record(env: Mapping[str, str], real: str) -> Path:
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
    return config_dir(env) / "trusted" / f"{name}.json"


def _read(record: Path) -> Trusted | None:
    try:
        content = json.loads(read_text(record))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    return Trusted(str(content.get("folder")), str(content.get("sha256")), str(content.get("prompts", "")))


FORBIDDEN = "a project file that is not trusted may not set it"
NOT_YOURS = "it names {what} that your own settings do not have"


class Admitted(NamedTuple):
    """The layer that counts. refused: the keys that were left out, and why, in the file's order."""

    layer: Layer
    refused: tuple[tuple[Key, str], ...] = ()


def admit(layer: Layer, own: Tree) -> Admitted:
    """The part of an untrusted file that may count. own: what every other source says."""
    kept: Tree = {}
    refused: dict[Key, str] = {}
    for key, value in leaves(layer.tree):
        reason = _reason(key, value, own)
        if reason is None:
            put(kept, key, value)
        else:
            refused[_named_by(key)] = reason
    return Admitted(layer._replace(tree=kept), tuple(refused.items()))


def refusals(admitted: Admitted) -> list[str]:
    """A sentence for each key left out, naming the command that lets it in."""
    layer = admitted.layer
    command = f"wholeturn trust {shlex.quote(layer.folder)}"
    told = [
        layer.says(key, f"{key_text(key)} is left out: {reason}; to permit it: {command}")
        for key, reason in admitted.refused[:MOST_FAULTS]
    ]
    return [*told, *more(len(admitted.refused))]


def _reason(key: Key, value: object, own: Tree) -> str | None:
    match key:
        case ("runtime_profiles", _, "tools") | ("runtime_profiles", _, "loop_context", "options", *_):
            # Limits may be set by anyone; what the agent can do may not.
            return FORBIDDEN
        case ("runtime_profiles", _, "loop_context", "strategy"):
            # Any other strategy is code.
            return None if value in BUILT_IN_CONTEXTS else FORBIDDEN
        case ("runtime_profiles", _, "loop_context", "model") | ("runtime_profiles", _, "summary_model"):
            allowed, what = _names_a_model(value, own), "a model"
        case ("runtime_profiles", *_) | ("agents", _, "runtime_profile"):
            allowed, what = _agent_is_known(key, own), "an agent"
        case ("default_agent",):
            allowed, what = value in _agents(own), "an agent"
        case ("agents", _, "provider"):
            allowed, what = _agent_is_known(key, own) and value in table(own, "providers"), "a provider"
        case ("agents", _, "model"):
            allowed, what = _agent_is_known(key, own) and value in _models(own), "a model"
        case _:
            return None if value == {} and len(key) == 1 else FORBIDDEN
    return None if allowed else NOT_YOURS.format(what=what)


def _agent_is_known(key: Key, own: Tree) -> bool:
    return key[0] != "agents" or key[1] in _agents(own)


def _names_a_model(value: object, own: Tree) -> bool:
    pair = pair_of(own, value) if isinstance(value, str) else None
    return pair is not None and (not pair[1] or pair[1] in _models(own))


def _agents(own: Tree) -> set[object]:
    return set(table(own, "agents")) or {IMPLIED_AGENT}


def _models(own: Tree) -> set[object]:
    sections = [(kind, name, "model") for kind in ("agents", "providers") for name in table(own, kind)]
    listed = {model for name in table(own, "providers") for model in table(own, "providers", name, "models")}
    return {subtree(own, key) for key in sections} - {None} | listed


def _named_by(key: Key) -> Key:
    """A whole provider or server is one refusal, not one for each of its keys."""
    return key[:2] if key[0] in ("providers", "mcp_servers") else key
