"""Files of a project that turn out to be the open session store: left out, and SQLite's locks on it stay."""

import os
from pathlib import Path

import pytest

from acp_server.config.files import read_layer
from acp_server.workspace import guidance_files
from acp_server.workspace.prompt_files import project_prompts
from runtime.store.sqlite.connection import open_for_writing
from runtime.tools.sandbox.ignore_files import lines_of
from runtime.values.errors import ConfigError
from tests.locks import LockAsker
from tests.runtime.tools.support import context

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX locks")


def test_files_that_are_read_on_the_way_are_left_out(tmp_path: Path, lock_asker: LockAsker) -> None:
    store, project = tmp_path / "s.db", tmp_path
    connection = open_for_writing(store, timeout=1)
    (project / ".wholeturn" / "prompts").mkdir(parents=True)
    for name in (".gitignore", "AGENTS.md", ".wholeturn/prompts/go.md", ".wholeturn.toml"):
        os.link(store, project / name)
    assert lines_of(str(project / ".gitignore")) == []
    found = guidance_files.find(project, context(project))
    assert len(found.left_out) == 2
    assert all("in use" in text for text in found.left_out)
    assert "in use" in project_prompts(project).left_out[0]
    with pytest.raises(ConfigError, match="cannot be read: it belongs to a database that is in use here"):
        read_layer(project / ".wholeturn.toml", "project")
    assert lock_asker.has(store)
    connection.close()
