"""The repository as a whole is sound: locks, licence, version, documents, and what a wheel contains."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from schemas.version import __version__

ROOT = Path(__file__).resolve().parent.parent
LOCKS_FOLDER = ROOT / "scripts" / "locks"
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")
LOCAL_LOCK = "requirements-local.lock"
NODE_LOCK = "tests/clients/node/package-lock.json"
PACKAGES = ("acp_server", "runtime", "schemas")
DOCUMENTED = (
    *PACKAGES,
    *(
        f"acp_server/{name}"
        for name in ("cli", "config", "gateway", "programs/script", "programs/transcripts")
    ),
    *(f"runtime/{name}" for name in ("history", "transcript", "permission", "trimming")),
    *(f"runtime/{name}" for name in ("providers", "store", "tools", "mcp")),
)
PIN = re.compile(r"^[a-z0-9][a-z0-9._-]*(\[[a-z0-9,_-]+\])?==[^\s;]+( ; .+)?$", re.IGNORECASE)
HASH = re.compile(r"^--hash=sha256:[0-9a-f]{64}$")
# What belongs to one machine or to a package registry. Written in pieces, since it reads itself, too.
FOREIGN = re.compile(
    "|".join(
        [
            "/work/" + "(main|shared|[.])",
            "[.][.]/" + "shared",
            r"(?<![\w.])/root/" + r"[\w.]",
            "pypi" + "[.]org",
            "pythonhosted" + "[.]org",
            "npmjs" + "[.](org|com)",
        ]
    )
)


def git(*arguments: str) -> list[str]:
    """Lines of a git command in the repository; skips the test where there is no git or no repository."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def kept_texts() -> list[tuple[str, str]]:
    """(name, text) of every text file that is, or would be, committed."""
    found = []
    for name in git("ls-files", "--cached", "--others", "--exclude-standard"):
        path = ROOT / name
        if path.is_file():
            data = path.read_bytes()
            if b"\0" not in data:
                found.append((name, data.decode()))
    return found


def requirements(text: str) -> list[tuple[str, list[str]]]:
    """The requirements of a lock file: (what is pinned, its options)."""
    joined = re.sub(r"\s*\\\n\s*", "\n\t", text)
    entries: list[tuple[str, list[str]]] = []
    for line in joined.splitlines():
        if line.startswith("\t"):
            entries[-1][1].append(line.strip())
        elif line.strip() and not line.startswith("#"):
            entries.append((line.strip(), []))
    return entries


def lock_problems(text: str) -> list[str]:
    """What keeps a lock file from being complete and free of any index."""
    found = [f"an address: {line.strip()}" for line in text.splitlines() if "://" in line]
    for pinned, options in requirements(text):
        if not PIN.match(pinned):
            found.append(f"not pinned: {pinned}")
        if not options or not all(HASH.match(option) for option in options):
            found.append(f"without hashes alone: {pinned}")
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_every_requirement_is_pinned_with_hashes(name: str):
    text = (LOCKS_FOLDER / name).read_text()
    assert len(requirements(text)) > 3
    assert lock_problems(text) == []


def test_a_loose_lock_is_noticed():
    good = f"a==1 \\\n    --hash=sha256:{'0' * 64}\n"
    assert lock_problems(good) == []
    assert lock_problems("a>=1 \\\n    --hash=sha256:" + "0" * 64) == ["not pinned: a>=1"]
    assert lock_problems("a==1\n") == ["without hashes alone: a==1"]
    assert lock_problems("--index-url https://x.example/simple\n" + good)[0].startswith("an address")


def names(text: str) -> set[str]:
    """The normalised names that a lock pins."""
    return {re.split(r"[\[=]", pinned)[0].lower().replace("_", "-") for pinned, _ in requirements(text)}


def test_the_runtime_lock_covers_the_dependencies_and_the_dev_lock_covers_both():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[<>=~! \[;]", line)[0].lower() for line in project["dependencies"]}
    runtime, dev, build = (names((LOCKS_FOLDER / lock).read_text()) for lock in LOCKS)
    assert wanted <= runtime <= dev
    assert build <= dev
    pins = [
        dict(p.split(" ;")[0].split("==") for p, _ in requirements((LOCKS_FOLDER / n).read_text()))
        for n in LOCKS
    ]
    assert {k: v for k, v in pins[0].items() if pins[1][k] != v} == {}


def test_the_lock_of_local_models_pins_the_extra_as_the_dev_lock_does():
    text = (LOCKS_FOLDER / LOCAL_LOCK).read_text()
    assert lock_problems(text) == []
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert names(text) == {re.split(r"[<>=~! \[;]", line)[0].lower() for line in extras["local"]}
    dev = requirements((LOCKS_FOLDER / "requirements-dev.lock").read_text())
    assert [entry for entry in requirements(text) if entry not in dev] == []


def test_the_node_lock_is_whole_and_names_no_registry():
    text = (ROOT / NODE_LOCK).read_text()
    assert "resolved" not in text
    assert "://" not in text
    lock = json.loads(text)
    wanted = json.loads((ROOT / NODE_LOCK).with_name("package.json").read_text())["dependencies"]
    packages = lock["packages"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    # Another platform's optional binary is the one thing that may stand there without a hash.
    bare = [name for name, entry in packages.items() if name and "integrity" not in entry]
    assert [name for name in bare if not (packages[name].get("optional") and packages[name].get("os"))] == []


def test_no_file_speaks_of_a_machine_or_a_registry():
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in kept_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if FOREIGN.search(line)
    ]
    assert not found, "\n".join(found)


FOREIGN_SAMPLES = [
    "see /work/" + "main/x",
    "../" + "shared/x",
    "https://pypi" + ".org/simple",
    "/root" + "/.cache",
]


@pytest.mark.parametrize("line", FOREIGN_SAMPLES)
def test_a_foreign_place_is_noticed(line: str):
    assert FOREIGN.search(line)
    assert not FOREIGN.search("scripts/test, network/working, http://127.0.0.1:8000")


def test_the_top_level_holds_what_a_reader_looks_for():
    names = {name.split("/")[0] for name in git("ls-files", "--cached", "--others", "--exclude-standard")}
    hidden = {name for name in names if name.startswith(".")}
    assert hidden == {".ci", ".gitignore"}
    documents = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "pyproject.toml"}
    assert names - hidden == documents | {*PACKAGES, "scripts", "tests"}


@pytest.mark.parametrize("folder", ["", *DOCUMENTED])
def test_each_package_has_a_readme(folder: str):
    text = (ROOT / folder / "README.md").read_text()
    assert text.startswith("# ")
    assert len(text) > 200


def named_paths(text: str) -> set[str]:
    """What stands in backticks and looks like a path of the repository."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    firsts = {span.split()[0] for span in spans}
    tops = (*PACKAGES, "scripts", "tests", ".ci")
    paths = {word.rstrip("/,.:") for word in firsts if re.fullmatch(r"[\w./-]+", word)}
    return {path for path in paths if path.split("/")[0] in tops and "/" in path}


def test_every_path_in_the_documents_exists():
    documents = [name for name, _ in kept_texts() if name.endswith(".md")]
    assert "README.md" in documents
    found = [
        f"{name}: {path}"
        for name in documents
        for path in sorted(named_paths((ROOT / name).read_text()))
        if not (ROOT / path).exists() and not (ROOT / name).parent.joinpath(path).exists()
    ]
    assert not found, "\n".join(found)


def test_a_path_in_a_document_is_seen():
    text = "See `scripts/test -k x`, `runtime/session/turn.py`, `session/update`, ```\n`scripts/none`\n```"
    assert named_paths(text) == {"scripts/test", "runtime/session/turn.py"}


def test_the_first_commands_of_the_readme_are_demo_and_test():
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert [block.strip() for block in blocks[:2]] == ["scripts/demo", "scripts/test"]


@pytest.mark.parametrize("name", ["_setup", "bench", "check", "demo", "fix", "test"])
def test_scripts_can_be_run(name: str):
    path = ROOT / "scripts" / name
    assert path.stat().st_mode & 0o111
    assert subprocess.run(["sh", "-n", str(path)], check=False).returncode == 0


def test_the_licence_is_apache_2():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "LICENSE").read_text()
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_changelog_knows_the_version():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert "Unreleased" in headings or __version__ in headings
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_a_wheel_holds_the_product_and_nothing_else(tmp_path: Path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"wholeturn-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.namelist()
        points = archive.read(f"wholeturn-{__version__}.dist-info/entry_points.txt").decode()
    tops = {entry.split("/")[0] for entry in entries}
    assert tops == {*PACKAGES, f"wholeturn-{__version__}.dist-info"}
    assert "wholeturn = acp_server.__main__:main" in points
    assert [entry for entry in entries if entry.endswith((".pyc", ".lock"))] == []
    assert any(entry.endswith("licenses/LICENSE") for entry in entries)
