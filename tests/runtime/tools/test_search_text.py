"""search_text: one output from both engines, what is left out, and that nothing is left running."""

import os
import shutil
import sys
from pathlib import Path

import pytest
import trio

from runtime.tools.search import search_process
from runtime.tools.search.search_text import SearchText
from runtime.values.errors import ToolError
from tests.runtime.tools.support import body, context, text_of, write, write_sparse

RIPGREP = shutil.which("rg", path=str(Path(sys.executable).parent)) or shutil.which("rg")
ENGINES = [pytest.param(None, id="worker"), pytest.param(RIPGREP, id="ripgrep")]


def test_both_engines_are_here():
    """It comes with the development requirements; without it half of this file would test the other half."""
    assert RIPGREP is not None


@pytest.fixture(params=ENGINES)
def tool(request):
    return SearchText(lambda roots: request.param)


@pytest.fixture
def project(tmp_path):
    write(
        tmp_path,
        {
            "src/app.py": "import os\n\ndef Main():\n    return 'needle'\n",
            "src/lib/util.ts": "// needle\r\nconst x = 1\r\n",
            "src-old.py": "needle\n",
            "README.md": "A Needle here\n",
            ".hidden": "needle\n",
            ".git/config": "needle\n",
            ".gitignore": "# made\nbuild/\n*.log\n!keep.log\n/only-here.txt\n",
            "build/out.py": "needle\n",
            "trace.log": "needle\n",
            "keep.log": "needle\n",
            "only-here.txt": "needle\n",
            "src/only-here.txt": "needle\n",
            "binary.bin": b"needle\0needle\n",
            "utf16.txt": "needle é\n".encode("utf-16"),
            "latin.txt": "caf\xe9 needle\n".encode("latin-1"),
        },
    )
    (tmp_path / "link.py").symlink_to("src/app.py")
    (tmp_path / "linked").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


async def test_matches_by_path_with_line_numbers(tool, project):
    assert (await text_of(tool, context(project), pattern="needle")).split("\n") == [
        ".hidden:1: needle",
        "keep.log:1: needle",
        "latin.txt:1: caf\ufffd needle",
        "src/app.py:4:     return 'needle'",
        "src/lib/util.ts:1: // needle",
        "src/only-here.txt:1: needle",
        "src-old.py:1: needle",
        "utf16.txt:1: needle é",
        "[8 matching lines in 8 files]",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "NEEDLE", "case_sensitive": False, "glob": "*.md"}, ["README.md:1: A Needle here"]),
        ({"pattern": "NEEDLE"}, []),
        ({"pattern": "^needle$", "path": "src"}, ["src/only-here.txt:1: needle"]),
        ({"pattern": "needle$", "glob": "*.ts"}, ["src/lib/util.ts:1: // needle"]),
        (
            {"pattern": "needle", "glob": "src/**/*.{ts,py}"},
            ["src/app.py:4:     return 'needle'", "src/lib/util.ts:1: // needle"],
        ),
        ({"pattern": "needle", "glob": "src/*.py"}, ["src/app.py:4:     return 'needle'"]),
        (
            {"pattern": "needle", "path": "src", "glob": "!*.py"},
            ["src/lib/util.ts:1: // needle", "src/only-here.txt:1: needle"],
        ),
        ({"pattern": "needle", "glob": "*.log"}, ["keep.log:1: needle", "trace.log:1: needle"]),
        ({"pattern": "needle", "path": "src/app.py"}, ["src/app.py:4:     return 'needle'"]),
        ({"pattern": "needle", "path": "build"}, ["build/out.py:1: needle"]),
        ({"pattern": "-needle"}, []),
        ({"pattern": r"\bdef \w+\(\)", "path": "./src/../src"}, ["src/app.py:3: def Main():"]),
        ({"pattern": "^$", "path": "src/app.py"}, ["src/app.py:2: "]),
    ],
)
async def test_arguments(tool, project, arguments, expected):
    assert body(await text_of(tool, context(project), **arguments)) == expected


NO_REGEX = [
    ("needle(", "needle("),
    ("arr[0", "arr[0"),
    ("*ptr", "*ptr"),
    ("C:\\new", "C:\\new"),
    ("f(x, *", "f(x, *"),
]


@pytest.mark.parametrize(("pattern", "text"), NO_REGEX)
async def test_what_is_no_expression_is_looked_for_as_it_is(tool, tmp_path, pattern, text):
    write(tmp_path, {"a": f"x {text} y\n", "b": "needle arr0 ptr\n"})
    line, note = (await text_of(tool, context(tmp_path), pattern=pattern)).split("\n")
    assert line == f"a:1: x {text} y"
    assert note.startswith("[1 matching line in 1 file; pattern is no regular expression (")
    assert note.endswith("): searched as plain text]")
    assert children() == []


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (r"(?<=a)b", ["a:2: ab"]),
        (r"(\w)\1", ["a:3: aa"]),
        ("\bcb\b", ["a:1: cb"]),
        (r"(?!a)\wb", ["a:1: cb"]),
    ],
)
async def test_expressions_that_only_one_of_the_engines_has(tool, tmp_path, pattern, lines):
    write(tmp_path, {"a": "cb\nab\naa\n"})
    text = await text_of(tool, context(tmp_path), pattern=pattern)
    assert body(text) == lines
    assert text.endswith("[1 matching line in 1 file]")


async def test_a_pattern_over_several_lines_is_no_search_without_a_hit(tool, tmp_path):
    write(tmp_path, {"a": "x\ny\n"})
    text = await text_of(tool, context(tmp_path), pattern=r"x\ny")
    assert text.startswith('[no match; pattern is no regular expression (the literal "\\n" is not allowed')
    assert text.endswith("): searched as plain text]")
    assert await text_of(tool, context(tmp_path), pattern=r"x\\ny") == "[no match]"


async def test_no_match_is_said(tool, project):
    assert await text_of(tool, context(project), pattern="nothing like this") == "[no match]"


async def test_cut_is_said_and_exact_number_is_not(tool, project):
    text = await text_of(tool, context(project), pattern="needle", max_results=2)
    assert text.split("\n") == [
        ".hidden:1: needle",
        "keep.log:1: needle",
        "[stopped at 2 matching lines; there are more: narrow pattern, path or glob]",
    ]
    text = await text_of(tool, context(project), pattern="needle", max_results=8)
    assert text.endswith("[8 matching lines in 8 files]")


async def test_odd_names_and_lines(tool, tmp_path):
    write(
        tmp_path,
        {
            "new\nline": "needle\n",
            "a:3: b": "needle\n",
            "漢 ü": "needle\n",
            "bad\udcff": "needle\n",
            "text": "tab\tneedle\x1b[31m\u2028 end\n",
        },
    )
    assert set((await text_of(tool, context(tmp_path), pattern="needle")).split("\n")) == {
        '"a:3: b":1: needle',
        '"bad\\udcff":1: needle',
        '"new\\nline":1: needle',
        "text:1: tab\tneedle\\x1b[31m\\u2028 end",
        "漢 ü:1: needle",
        "[5 matching lines in 5 files]",
    }


async def test_long_line_is_shown_around_the_match(tool, tmp_path):
    write(tmp_path, {"min.js": "é" * 50_000 + "needle" + "é" * 50_000})
    line, end = (await text_of(tool, context(tmp_path), pattern="needle")).split("\n")
    assert "needle" in line
    assert line.startswith("min.js:1: …é")
    assert len(line) < 350
    assert end == "[1 matching line in 1 file]"


async def test_other_root_is_shown_absolute(tool, tmp_path):
    write(tmp_path, {"one/a": "needle", "two/b": "needle"})
    where = context(tmp_path / "one", tmp_path / "two")
    assert body(await text_of(tool, where, pattern="needle")) == ["a:1: needle"]
    assert body(await text_of(tool, where, pattern="needle", path=f"{tmp_path}/two")) == [
        f"{tmp_path}/two/b:1: needle"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": ""}, "pattern is empty"),
        ({"pattern": "a\0"}, "pattern holds a character"),
        ({"pattern": "a\nb"}, "pattern holds a character"),
        ({"pattern": "x" * 5000}, "pattern is too long"),
        ({}, "search_text needs the argument pattern"),
        ({"pattern": 3}, "pattern must be a string, not 3"),
        ({"pattern": "a", "path": ".."}, "outside"),
        ({"pattern": "a", "path": "linked/passwd"}, "outside"),
        ({"pattern": "a", "path": "pipe"}, "pipe is a FIFO"),
        ({"pattern": "a", "path": "srcc"}, "srcc does not exist; near names in the top folder: src"),
        ({"pattern": "a", "case_sensitive": "yes"}, "case_sensitive must be true or false"),
        ({"pattern": "a", "max_results": 0}, "max_results must be a whole number from 1 to 1000"),
        ({"pattern": "a", "regex": True}, "unknown argument regex; search_text takes pattern, path, glob"),
    ],
)
async def test_refused(tool, project, arguments, said):
    with pytest.raises(ToolError, match=said):
        await tool.run(arguments, context(project))


async def test_file_over_the_limit_is_not_searched_and_named_when_asked_for(tool, tmp_path):
    write(tmp_path, {"small": "needle"})
    write_sparse(tmp_path / "large", b"needle\n", search_process.MAX_FILE + 1)
    assert body(await text_of(tool, context(tmp_path), pattern="needle")) == ["small:1: needle"]
    with pytest.raises(ToolError, match="large is too large"):
        await text_of(tool, context(tmp_path), pattern="needle", path="large")


async def test_pattern_that_backtracks_without_end_is_stopped(tmp_path):
    write(tmp_path, {"a": "needle\n", "b": "a" * 60 + "!\n"})
    tool = SearchText(lambda roots: None, time_limit=1.5)
    text = await text_of(tool, context(tmp_path), pattern="needle|^(a+)+$")
    assert text.startswith(
        "a:1: needle\n[1 matching line in 1 file; stopped after 1.5 s, not all was searched"
    )
    assert children() == []


# ------------------------------------------------------------- programs that stand in for ripgrep


def program(folder: Path, source: str) -> str:
    """An executable that behaves as `source` says, whatever its arguments."""
    path = folder / "rg"
    path.write_text(f"#!{sys.executable} -IS\nimport json, os, subprocess, sys, time\n{source}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _others():
    """What runs already, such as a server of other tests, is no child of these."""
    OTHERS.clear()
    OTHERS.update(all_children())


OTHERS: set[int] = set()


def all_children() -> set[int]:
    """Processes of ours that run or were not reaped."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


def children() -> list[int]:
    """Those that a test has left."""
    return sorted(all_children() - OTHERS)


MATCH = """
def hit(n):
    data = {"path": {"text": "./f"}, "lines": {"text": "x" * n + "\\n"}, "line_number": 1}
    print(json.dumps({"type": "match", "data": data}), flush=True)
"""


async def test_cancel_leaves_no_process_behind(tmp_path, tmp_path_factory):
    """The program ignores the polite signal and has a child; both hold the writing end of a FIFO."""
    tools = tmp_path_factory.mktemp("tools")
    os.mkfifo(tools / "alive")
    source = f"""
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
alive = os.open({str(tools / "alive")!r}, os.O_WRONLY)
os.set_inheritable(alive, True)
subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(600)"], close_fds=False)
os.write(alive, b"both\\n")
time.sleep(600)
"""
    tool = SearchText(lambda roots: program(tools, source), time_limit=600)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: text_of(tool, context(tmp_path), pattern="x"))
            alive = await trio.to_thread.run_sync(open, tools / "alive", "rb", abandon_on_cancel=True)
            assert await trio.to_thread.run_sync(alive.readline, abandon_on_cancel=True) == b"both\n"
            nursery.cancel_scope.cancel()
        # The end of the file comes when the last process that could write to it is gone.
        assert await trio.to_thread.run_sync(alive.read, abandon_on_cancel=True) == b""
        alive.close()
    assert children() == []


async def test_enough_was_found_ends_the_program(tmp_path):
    tool = SearchText(lambda roots: program(tmp_path, MATCH + "while True: hit(9)"))
    text = await text_of(tool, context(tmp_path), pattern="x", max_results=3)
    assert text.startswith("f:1: xxx")
    assert text.endswith("[stopped at 3 matching lines; there are more: narrow pattern, path or glob]")
    assert children() == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("print('what?')", "the search answered in a form that is not understood"),
        ("print('[]')", "the search answered in a form that is not understood"),
        ("sys.stdout.write('x' * 5000)", "the search gave a line too long to take in"),
        ("sys.exit('a reason')", "the search failed: a reason"),
        ("sys.stderr.write('e' * 10_000_000); sys.exit(2)", "the search failed: eee"),
        ("os.kill(os.getpid(), 9)", "the search failed: it was ended by signal 9"),
        ("sys.exit(3)", "the search failed: it ended with exit status 3"),
        ("os.close(1); time.sleep(0.3); sys.exit('late words')", "the search failed: late words"),
    ],
)
async def test_program_that_fails(tmp_path, monkeypatch, source, said):
    monkeypatch.setattr(search_process, "_MAX_LINE", 1000)
    tool = SearchText(lambda roots: program(tmp_path, source))
    with pytest.raises(ToolError, match=said) as caught:
        await text_of(tool, context(tmp_path), pattern="x")
    assert len(str(caught.value)) < 700
    assert children() == []


async def test_program_that_breaks_off_after_hits_is_said(tmp_path):
    tool = SearchText(lambda roots: program(tmp_path, MATCH + "hit(1); sys.exit('out of memory')"))
    text = await text_of(tool, context(tmp_path), pattern="x")
    assert text == "f:1: x\n[1 matching line in 1 file; the search broke off: out of memory]"


async def test_unreadable_files_are_counted(tmp_path):
    source = """
hit(1)
sys.stderr.write("rg: a: denied\\nrg: b: denied\\n")
print('{"type":"summary","data":{}}')
"""
    tool = SearchText(lambda roots: program(tmp_path, MATCH + source))
    text = await text_of(tool, context(tmp_path), pattern="x")
    assert text == "f:1: x\n[1 matching line in 1 file; files or folders that could not be read: 2]"


async def test_program_that_cannot_start(tmp_path):
    (tmp_path / "rg").write_text("not a program")
    tool = SearchText(lambda roots: str(tmp_path / "rg"))
    with pytest.raises(ToolError, match="the search could not be started"):
        await text_of(tool, context(tmp_path), pattern="x")


async def test_child_sees_no_secrets_of_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    tool = SearchText(lambda roots: program(tmp_path, "sys.exit(' '.join(os.environ))"))
    with pytest.raises(ToolError) as caught:
        await text_of(tool, context(tmp_path), pattern="x")
    assert "PATH" in str(caught.value)
    assert "SOME_API_KEY" not in str(caught.value)


def test_ripgrep_out_of_a_searched_folder_is_not_run(tmp_path, monkeypatch):
    write(tmp_path, {"project/bin/x": "", "tools/x": ""})
    program(tmp_path / "project/bin", "")
    found = program(tmp_path / "tools", "")
    roots = (tmp_path / "project",)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", f"bin:.:{tmp_path}/project/bin:{tmp_path}/tools")
    assert search_process.find_ripgrep(roots) == found
    monkeypatch.setenv("PATH", f"bin:.:{tmp_path}/project/bin")
    assert search_process.find_ripgrep(roots) is None


async def test_without_ripgrep_and_interpreter(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(ToolError, match="needs ripgrep"):
        await text_of(SearchText(lambda roots: None), context(tmp_path), pattern="x")


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({"pattern": "foo", "path": "src"}, 'Search for "foo" in src'),
        ({"pattern": "foo"}, 'Search for "foo"'),
        ({"pattern": "foo", "path": "."}, 'Search for "foo"'),
        ({"pattern": "a\nb"}, 'Search for "a\\x0ab"'),
        ({"pattern": "foo", "path": "\0"}, 'Search for "foo"'),
        ({"pattern": 3}, "Search"),
        ({}, "Search"),
    ],
)
def test_view(tmp_path, arguments, title):
    assert SearchText().view(arguments, context(tmp_path)).title == title
