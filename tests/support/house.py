"""The house rules that no linter knows: functions from a source text to what is wrong with it. Reads no file.

Each finding is one sentence without the file's name; an empty list means that the rule is kept.
"""

import ast
from collections.abc import Iterator

SOURCE_LINES = 300
TEST_LINES = 400
FUNCTION_LINES = 40
PUBLIC_METHODS = 12
ATTRIBUTES = 10
OPENING = 107

WHOLE_FILES = {"read_text", "read_bytes", "write_text", "write_bytes"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
STREAMS = {"stdin", "stdout", "__stdin__", "__stdout__"}
FD_CALLS = {"read", "write", "dup", "dup2", "fdopen", "close", "set_blocking", "set_inheritable", "open"}


def functions(tree: ast.AST) -> Iterator[Function]:
    """All functions, methods and inner ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def long_file(source: str, limit: int) -> list[str]:
    """A file of more than `limit` lines."""
    count = len(source.splitlines())
    return [f"{count} lines, at most {limit}"] if count > limit else []


def long_functions(source: str, limit: int = FUNCTION_LINES) -> list[str]:
    """Functions of more than `limit` lines, the docstring counted, decorators not."""
    return [
        f"{node.name} has {size} lines, at most {limit}"
        for node in functions(ast.parse(source))
        if (size := (node.end_lineno or 0) - node.lineno + 1) > limit
    ]


def attributes(node: ast.ClassDef) -> set[str]:
    """The names that an object of the class carries: annotated fields, and what is set on `self`."""
    found = {
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }
    stored = (
        part for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
    )
    return found | {part.attr for part in stored if is_name(part.value, "self")}


def broad_classes(source: str) -> list[str]:
    """Classes with too many public methods or attributes.

    A record, frozen or without methods, is as broad as the thing that it describes, and is left alone.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        methods = [part.name for part in node.body if isinstance(part, Function)]
        public = [name for name in methods if not name.startswith("_")]
        if len(public) > PUBLIC_METHODS:
            found.append(f"{node.name} has {len(public)} public methods, at most {PUBLIC_METHODS}")
        if methods and not is_frozen(node) and (count := len(attributes(node))) > ATTRIBUTES:
            found.append(f"{node.name} has {count} attributes, at most {ATTRIBUTES}")
    return found


def is_frozen(node: ast.ClassDef) -> bool:
    """Whether the class is a frozen dataclass."""
    return any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)


def missing_docstring(source: str) -> list[str]:
    """A module that does not open by saying, in one line, what it holds. An empty package file needs none."""
    tree = ast.parse(source)
    first = (ast.get_docstring(tree) or "").partition("\n")[0]
    if not tree.body or (first.endswith(".") and len(first) <= OPENING):
        return []
    return [f"the first line is no sentence of {OPENING} characters at most: {first}"]


def relative_imports(source: str) -> list[str]:
    """Imports that begin with a dot."""
    return [
        f"line {node.lineno}: relative import"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.level
    ]


def imports_of(source: str, package: str) -> list[str]:
    """Imports of a package, wherever in the file they stand; its name as a string counts, too."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value == package:
            names = [node.value]
        if any(name == package or name.startswith(package + ".") for name in names):
            found.append(f"line {getattr(node, 'lineno', 0)}: imports {package}")
    return found


def hidden_imports(source: str) -> list[str]:
    """Imports inside functions."""
    return sorted(
        {
            f"line {node.lineno}: import inside {function.name}"
            for function in functions(ast.parse(source))
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
    )


def standard_streams(source: str) -> list[str]:
    """Uses of sys.stdin, sys.stdout, a bare print, or of the file descriptors 0 and 1 by number."""
    return [
        f"line {getattr(node, 'lineno', 0)}: {use}"
        for node in ast.walk(ast.parse(source))
        if (use := stream_use(node))
    ]


def stream_use(node: ast.AST) -> str:
    """What standard stream the node touches; '' for none."""
    if isinstance(node, ast.Attribute) and is_name(node.value, "sys") and node.attr in STREAMS:
        return f"sys.{node.attr}"
    if isinstance(node, ast.Call):
        if is_name(node.func, "print") and not any(word.arg == "file" for word in node.keywords):
            return "print"
        if is_name(node.func, "input"):
            return "input"
        return descriptor_use(node)
    return ""


def descriptor_use(call: ast.Call) -> str:
    """The os function that the call applies to descriptor 0 or 1; '' for none."""
    function = call.func
    if not isinstance(function, ast.Attribute) or not is_name(function.value, "os"):
        return ""
    if function.attr in FD_CALLS and call.args and is_descriptor(call.args[0]):
        return f"os.{function.attr} of descriptor {ast.unparse(call.args[0])}"
    return ""


def hand_opened(source: str) -> list[str]:
    """Files opened by name, and databases connected to, without asking `runtime/values/file_access.py`."""
    return [
        f"line {node.lineno}: {use}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and (use := opening_use(node))
    ]


def opening_use(call: ast.Call) -> str:
    """What the call opens a file with; '' when it opens none, or only wraps a descriptor that stays open."""
    function = call.func
    if is_name(function, "open"):
        kept = any(word.arg == "closefd" and ast.unparse(word.value) == "False" for word in call.keywords)
        return "" if kept else "open"
    if not isinstance(function, ast.Attribute):
        return ""
    of_module = isinstance(function.value, ast.Name) and function.value.id in ("os", "io", "sqlite3", "trio")
    if function.attr in ("open", "open_file", "connect", "fdopen"):
        has_mode = bool(call.args) and isinstance(call.args[0], ast.Constant)
        return ast.unparse(function) if of_module or (function.attr == "open" and has_mode) else ""
    return function.attr if function.attr in WHOLE_FILES else ""


def is_name(node: ast.AST, name: str) -> bool:
    """Whether the node is just that name."""
    return isinstance(node, ast.Name) and node.id == name


def is_descriptor(node: ast.AST) -> bool:
    """Whether the node is the number 0 or 1."""
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1)
