"""Reads a script file, YAML or JSON, and says where in it something is wrong. Knows no provider."""

from pathlib import Path

import orjson
import yaml

from runtime.providers.scripted import script
from runtime.providers.scripted.script import Script, ScriptProblem, parse_script
from runtime.values.errors import ConfigError
from runtime.values.file_access import read_text

MAX_FILE_BYTES = 64 * 1024 * 1024


def load_script(path: Path) -> Script:
    """The script in a file; `.json` is JSON, all else YAML. Raises ConfigError with file and line."""
    text = _text(path)
    try:
        is_json = path.suffix.lower() == ".json"
        return parse_script(orjson.loads(text) if is_json else yaml.load(text, Loader=_LOADER))
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}{where}: {error.problem or 'no valid YAML'}") from None
    except yaml.YAMLError:
        raise ConfigError(f"{path}: holds characters that YAML does not permit") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None
    except ScriptProblem as problem:
        raise ConfigError(f"{path}, line {_line(text, problem.path)}: {problem}") from None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{path}: is larger than {MAX_FILE_BYTES // 1024**2} MiB")
        return read_text(path, "utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or 'unknown reason'}") from None


def _line(text: str, path: script.Path) -> int:
    """The 1-based line of the value at `path`, or of the nearest thing around it."""
    # JSON is YAML but for its tabs, which stand only between values.
    node = yaml.compose(text.replace("\t", " "), Loader=_LOADER)
    line = node.start_mark.line if node else 0
    for step in path:
        node, line = _child(node, step, line)
    return line + 1


def _child(node: yaml.Node | None, step: str | int, line: int) -> tuple[yaml.Node | None, int]:
    if isinstance(node, yaml.SequenceNode) and step == "replies":
        return node, line  # the short form: the document is the list itself
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        child = node.value[step]
        return child, child.start_mark.line
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return value, key.start_mark.line
    return None, line


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
