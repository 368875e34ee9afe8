"""The house rules hold in every file, and each rule is able to find what it forbids."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import house

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("acp_server", "runtime", "schemas")

# Who may touch the standard streams, and why. In the server only stdio.py may: the wire is theirs.
STREAMS_ALLOWED = {
    "acp_server/wire/stdio.py": "moves the descriptors out of everyone's way",
    "acp_server/cli/": "commands for people, never the server",
    "acp_server/programs/demo/": "a play for people, in a process of its own",
    "runtime/tools/search/worker.py": "a child process with pipes of its own",
    "runtime/mcp/guard_worker.py": "a child process with a pipe of its own",
}
# Who may import inside a function, and why. Everywhere else an import stands at the top.
LAZY_ALLOWED = {
    "acp_server/__main__.py": "the server or a command, never both",
    "acp_server/start/start.py": "the first answer goes out before the heavy imports",
    "acp_server/cli/": "each command loads only what it needs",
    "acp_server/config/": "only what the given files call for",
    "acp_server/app/app.py": "picks implementations by name",
    "acp_server/acp/params.py": "content blocks, with the first prompt",
    "acp_server/assembly/": "servers and trimmers, which most sessions have not",
    "acp_server/commands/commands.py": "the look for models, when none is configured",
    "acp_server/doctor/store.py": "the driver of a database, and what mends a file",
    "acp_server/methods/v1/sessions.py": "the runtime, in a thread behind the answer",
    "runtime/tools/files/syntax.py": "the checks, when the first such file is changed",
    "runtime/mcp/session_servers.py": "the SDK, in a thread: it takes a second",
    "runtime/store/": "search, watching and repair, when they are asked for",
    "schemas/acp/": "content blocks and MCP servers, when one is sent",
    "acp_server/methods/v1/table.py": "what a request is made of, when the model is tried",
    "acp_server/methods/versions.py": "the draft of ACP v2, for a client that asks for it",
    "runtime/__init__.py": "what a program asks for, and no more",
    "runtime/providers/scripted/__init__.py": "what a program asks for, and no more",
    "runtime/tools/web/fetch_url.py": "the HTTP client, only when a page is fetched",
}
# Who may open files without `runtime/values/file_access.py`, and why: everywhere else it could be a store's.
OPENING_ALLOWED = {
    "runtime/values/file_access.py": "does it for all others",
    "runtime/store/sqlite/connection.py": "claims the store's file before SQLite opens it",
    "runtime/store/sqlite/file.py": "the lock file, whose lock goes with its own descriptor",
    "runtime/tools/sandbox/roots.py": "folders on the way to a file",
    "acp_server/wire/stdio.py": "the null device",
    "acp_server/cli/output.py": "the null device",
    "acp_server/cli/completion.py": "files of the package",
    "acp_server/cli/editors.py": "files of the package",
    "acp_server/gateway/serve.py": "files of the package",
    "acp_server/programs/demo/": "a play for people, in a process without a store",
}
HEAVY = ("trio", "pydantic", "orjson", "jsonrpcserver", "httpx2", "sqlite3", "yaml", "asyncio", "logging")


def sources(*folders: str) -> list[Path]:
    """Python files of ours below the folders, relative to the root."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    skipped = {"data", "node_modules", "__pycache__"}
    return sorted(path.relative_to(ROOT) for path in found if not skipped & set(path.parts))


def findings(rule: Callable[[str], list[str]], files: list[Path]) -> list[str]:
    """What a rule finds in the files, each with its name before it."""
    return [f"{path}: {what}" for path in files for what in rule((ROOT / path).read_text())]


def none_of(found: list[str]) -> bool:
    """Whether nothing was found; otherwise the test fails and shows all of it."""
    if found:
        pytest.fail("\n".join(found), pytrace=False)
    return True


def outside(files: list[Path], allowed: dict[str, str]) -> list[Path]:
    """The files that no entry of the table excuses."""
    return [path for path in files if not path.as_posix().startswith(tuple(allowed))]


def test_there_is_something_to_look_at():
    assert len(sources(*PACKAGES)) > 20
    assert Path("tests/test_architecture.py") in sources("tests")


def test_source_files_are_short():
    assert (
        findings(lambda text: house.long_file(text, house.SOURCE_LINES), sources(*PACKAGES, "scripts")) == []
    )


def test_test_files_are_short():
    assert none_of(findings(lambda text: house.long_file(text, house.TEST_LINES), sources("tests")))


def test_functions_are_short():
    assert none_of(findings(house.long_functions, sources(*PACKAGES, "scripts", "tests")))


def test_classes_are_narrow():
    assert none_of(findings(house.broad_classes, sources(*PACKAGES, "scripts")))


def test_modules_say_what_they_hold():
    assert none_of(findings(house.missing_docstring, sources(*PACKAGES, "scripts", "tests")))


def test_imports_are_absolute():
    assert none_of(findings(house.relative_imports, sources(*PACKAGES, "scripts", "tests")))


def test_only_stdio_touches_the_standard_streams():
    assert none_of(findings(house.standard_streams, outside(sources(*PACKAGES), STREAMS_ALLOWED)))


def test_only_dispatch_knows_jsonrpcserver():
    files = outside(sources(*PACKAGES), {"acp_server/wire/dispatch.py": ""})
    assert none_of(findings(lambda text: house.imports_of(text, "jsonrpcserver"), files))
    dispatch = (ROOT / "acp_server" / "wire" / "dispatch.py").read_text()
    assert house.imports_of(dispatch, "jsonrpcserver") != []


def test_imports_stand_at_the_top():
    assert none_of(findings(house.hidden_imports, outside(sources(*PACKAGES), LAZY_ALLOWED)))


def test_files_are_opened_beside_open_databases_with_care():
    assert none_of(findings(house.hand_opened, outside(sources(*PACKAGES), OPENING_ALLOWED)))


@pytest.mark.parametrize("table", [STREAMS_ALLOWED, LAZY_ALLOWED, OPENING_ALLOWED])
def test_no_excuse_outlives_its_file(table: dict[str, str]):
    assert [name for name in table if not (ROOT / name).exists()] == []


def loaded(module: str, *candidates: str) -> list[str]:
    """Which of the candidates a new interpreter has loaded after importing the module."""
    program = f"import sys, {module}; print(*(n for n in {candidates!r} if n in sys.modules))"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COV_", "COVERAGE_"))}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "module", ["acp_server.acp.capabilities", "acp_server.wire.stdio", "acp_server.start.start"]
)
def test_the_first_answer_needs_nothing_heavy(module: str):
    assert loaded(module, *HEAVY) == []


def test_what_is_loaded_is_seen():
    assert loaded("json, decimal", "decimal", "trio") == ["decimal"]


MANY_METHODS = "class C:\n" + "".join(f"    def m{i}(self): pass\n" for i in range(13))
MANY_ATTRIBUTES = "class C:\n    def __init__(self):\n" + "".join(
    f"        self.a{i} = 0\n" for i in range(11)
)
WIDE_RECORD = "class C:\n" + "".join(f"    a{i}: int\n" for i in range(11))
METHOD = "    def m(self): pass\n"
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 40

SAMPLES = [
    (lambda text: house.long_file(text, 3), "a\n" * 4, "a\n" * 3),
    (house.long_functions, LONG_FUNCTION, LONG_FUNCTION.removesuffix("    x = 1\n")),
    (house.broad_classes, MANY_METHODS, MANY_METHODS.replace("m12", "_m12")),
    (house.broad_classes, MANY_ATTRIBUTES, MANY_ATTRIBUTES.replace("a10", "a9")),
    (house.broad_classes, WIDE_RECORD + METHOD, WIDE_RECORD),
    (house.broad_classes, WIDE_RECORD + METHOD, "@dataclass(frozen=True)\n" + WIDE_RECORD + METHOD),
    (house.missing_docstring, "import os\n", '"""Holds it."""\nimport os\n'),
    (house.missing_docstring, "x = 1\n", ""),
    (house.missing_docstring, '"""Holds it and\nmore."""\n', '"""Holds it.\n\nAnd more."""\n'),
    (house.missing_docstring, f'"""{"x" * 107}."""\n', f'"""{"x" * 106}."""\n'),
    (house.relative_imports, "from . import a\n", "from a import b\n"),
    (house.standard_streams, "import sys\nsys.stdout.write('x')\n", "import sys\nsys.stderr.write('x')\n"),
    (house.standard_streams, "print('x')\n", "print('x', file=log)\n"),
    (house.standard_streams, "os.write(1, b'x')\n", "os.write(fd, b'x')\n"),
    (house.standard_streams, "os.dup2(0, 5)\n", "os.dup2(2, 5)\n"),
    (lambda text: house.imports_of(text, "jsonrpcserver"), "from jsonrpcserver.result import Success\n", ""),
    (
        lambda text: house.imports_of(text, "jsonrpcserver"),
        "x = importlib.import_module('jsonrpcserver')\n",
        "",
    ),
    (house.hand_opened, "with open(name) as file: pass\n", "open(descriptor, closefd=False)\n"),
    (house.hand_opened, "os.open(name, flags)\n", "wires.open(stream, context)\n"),
    (house.hand_opened, "path.open('rb')\n", "with opened(path) as descriptor: pass\n"),
    (house.hand_opened, "path.read_bytes()\n", "read_text(path)\n"),
    (house.hand_opened, "sqlite3.connect(path)\n", "connect(path, 1.0)\n"),
    (house.hidden_imports, "def f():\n    import os\n", "import os\n"),
]


@pytest.mark.parametrize(("rule", "bad", "good"), SAMPLES)
def test_each_rule_can_fail(rule: Callable[[str], list[str]], bad: str, good: str):
    assert rule(bad) != []
    assert rule(good) == []
