"""A session store inside the workspace: whatever a model does there, SQLite's locks on it stay."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.ports import Tool
from runtime.store.sqlite.connection import open_for_writing
from runtime.tools.files.edit_file import EditFile
from runtime.tools.files.list_dir import ListDir
from runtime.tools.files.read_file import ReadFile
from runtime.tools.files.write_file import WriteFile
from runtime.tools.search.find_files import FindFiles
from runtime.tools.search.search_text import SearchText
from runtime.values.errors import ToolError
from tests.locks import LockAsker
from tests.runtime.tools.support import Editor, context

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX locks")
NAMES = ("s.db", "s.db-wal", "s.db-shm", "link", "hard")
SAID = "belongs to the session store, which is in use"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder with a store that is open, and with other names for it."""
    store = tmp_path / "s.db"
    connection = open_for_writing(store, timeout=1)
    (tmp_path / "link").symlink_to(store)
    os.link(store, tmp_path / "hard")
    yield tmp_path
    connection.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("tool", "more"),
    [
        (ReadFile(), {}),
        (WriteFile(), {"content": "x"}),
        (EditFile(), {"edits": [{"old": "SQLite", "new": "x"}]}),
    ],
)
async def test_no_tool_opens_it(
    project: Path, lock_asker: LockAsker, tool: Tool, more: dict[str, object], name: str
) -> None:
    before = (project / name).stat()
    with pytest.raises(ToolError, match=SAID):
        await tool.run({"path": name, **more}, context(project))
    assert lock_asker.has(project / "s.db")
    after = (project / name).stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)


async def test_an_editor_that_has_it_open_does_not_get_around_that(
    project: Path, lock_asker: LockAsker
) -> None:
    editor = Editor({project / "s.db": "text"}, writes=True)
    with pytest.raises(ToolError, match=SAID):
        await ReadFile().run({"path": "s.db"}, context(project, client=editor))
    with pytest.raises(ToolError, match=SAID):
        await WriteFile().run({"path": "s.db", "content": "x"}, context(project, client=editor))
    assert editor.written == []
    assert lock_asker.has(project / "s.db")


@pytest.mark.parametrize("find_ripgrep", [lambda _: None, None])
async def test_it_is_searched_by_another_process(
    project: Path, lock_asker: LockAsker, find_ripgrep: object
) -> None:
    tool = SearchText() if find_ripgrep is None else SearchText(find_ripgrep)  # type: ignore[arg-type]
    (project / "f.txt").write_text("SQLite\n")
    outcome = await tool.run({"pattern": "SQLite"}, context(project))
    assert outcome.text.startswith("f.txt:1: SQLite")
    for look in (FindFiles().run({"pattern": "*"}, context(project)), ListDir().run({}, context(project))):
        assert "s.db" in (await look).text
    assert lock_asker.has(project / "s.db")
