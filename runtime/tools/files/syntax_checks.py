"""Checks of a text's syntax: what is wrong with it in one line, '' for nothing or what cannot be told."""

import ast
import json
import threading
import tomllib
import warnings

import yaml

_LOADER = getattr(yaml, "CSafeLoader", None)
_KEY_PARTS = 64
_ONE_AT_A_TIME = threading.Lock()


def python_fault(text: str) -> str:
    """By the Python that runs this: a newer one may know more."""
    try:
        # Warnings of the file's own are nobody's business here; their filters belong to the whole process.
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError):
        return ""
    return ""


def json_fault(text: str) -> str:
    """One value, nothing else."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError):
        return ""
    return ""


def toml_fault(text: str) -> str:
    """TOML 1.0."""
    # tomllib's memory grows with the square of a key's parts.
    if any(line.count(".") > _KEY_PARTS for line in text.split("\n")):
        return ""
    try:
        tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        return str(error).split("\n", 1)[0]
    except RecursionError:
        return ""
    return ""


def yaml_fault(text: str) -> str:
    """Every document. A template is none yet."""
    if _LOADER is None or "{{" in text or "{%" in text:
        return ""
    try:
        for _ in yaml.parse(text, Loader=_LOADER):
            pass
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return f"line {line}: {error.problem or error.context or 'no YAML'}"
    except (yaml.YAMLError, ValueError, RecursionError):
        return ""
    return ""
