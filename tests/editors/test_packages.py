"""What is in the wheel and in the source archive: the product, and nothing beside it."""

import tarfile
import zipfile
from pathlib import Path

import pytest

from schemas.version import __version__
from tests.editors.fresh import ROOT, built

PACKAGES = {"acp_server", "runtime", "schemas"}
INFO = f"wholeturn-{__version__}.dist-info"
DATA = [
    *(
        f"acp_server/programs/editors/{path.name}"
        for path in (ROOT / "acp_server/programs/editors").glob("*.md")
    ),
    "acp_server/programs/editors/registry/wholeturn/agent.json",
    "acp_server/programs/editors/registry/wholeturn/icon.svg",
    *(f"acp_server/programs/shell/wholeturn.{kind}" for kind in ("1", "bash", "zsh", "fish")),
]
WEB = (".html", ".css", ".js")
ENDINGS = (".py", ".pyi", ".md", ".typed", ".1", ".bash", ".zsh", ".fish", ".json", ".svg", *WEB)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The files of the wheel."""
    with zipfile.ZipFile(built("wheel", tmp_path_factory.mktemp("wheel"))) as archive:
        return archive.namelist()


def test_the_wheel_holds_the_packages_alone(names: list[str]):
    assert {name.split("/")[0] for name in names} == {*PACKAGES, INFO}


def test_the_wheel_holds_all_of_the_packages(names: list[str]):
    sources = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "__pycache__" not in path.parts
    }
    assert len(sources) > 200
    assert sources - set(names) == set()
    assert set(DATA) - set(names) == set()
    assert len(DATA) > 10


def test_no_test_and_nothing_made_is_in_the_wheel(names: list[str]):
    inside = [name for name in names if not name.startswith(INFO)]
    assert [name for name in inside if "test" in Path(name).name or "__pycache__" in name] == []
    assert [name for name in inside if not name.endswith(ENDINGS)] == []


def test_the_source_archive_can_make_the_wheel_again(tmp_path: Path):
    with tarfile.open(built("sdist", tmp_path)) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", *DATA} <= inside
    tops = {name.split("/")[0] for name in inside if name}
    assert tops >= PACKAGES
    assert not tops & {".venv", ".git", ".hypothesis", ".mypy_cache", "dist"}
    assert [name for name in inside if "node_modules" in name or name.endswith((".pyc", ".db"))] == []
