"""The optional parts of the package, and the command that adds one to this very installation.

Knows no settings and no command.
"""

import shlex
import sys
from collections.abc import Callable
from importlib.util import find_spec

MODULES = {
    "gateway": ("hypercorn", "starlette"),
    "keyring": ("keyring",),
    "local": ("xllamacpp",),
    "postgres": ("psycopg", "psycopg_pool"),
    "tokens": ("bpe_openai",),
}
"""Extra -> the modules that it brings."""

Find = Callable[[str], object]


def is_installed(extra: str, find: Find = find_spec) -> bool:
    """Whether all of it is there. Imports nothing."""
    return all(find(module) is not None for module in MODULES[extra])


def installing(extra: str, find: Find = find_spec) -> str:
    """The command for a shell. By this interpreter's own pip: what is installed stays, wherever it came from;
    an environment without pip was made by uv.
    """
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find("pip") is not None else f"uv pip install --python {python}"
    return f"{pip} 'wholeturn[{extra}]'"
