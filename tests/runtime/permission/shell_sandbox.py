"""A folder in which real shells run command lines with fake programs that write down what was run.

The fakes do what their namesakes would where that runs another program (`env rm`, `find -exec rm`); nothing
else. Knows nothing of the product's rules.
"""

import os
import select
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

Argv = tuple[str, ...]

PROGRAMS = (
    "git npm ls cat rm curl find fd rg sort tar sudo env xargs nohup nice timeout time sh bash python3 node "
    "make sed awk tee cp mkdir touch command doas parallel setsid watch ssh evil git.exe"
)
SHELLS = tuple(name for name in ("dash", "bash", "zsh", "busybox") if shutil.which(name)) or ("sh",)

_FAKE = r"""#!@SHELL@
name=${0##*/}
record=$name
for word in "$@"; do record="$record@US@$word"; done
printf '%s\036' "$record" >> "$SANDBOX_LOG"
case $name in
  env|sudo|xargs|nohup|nice|timeout|time|command|doas|parallel|setsid|watch|ssh)
    while [ $# -gt 0 ]; do
      case $1 in -*|[0-9]*|*=*) shift ;; *) break ;; esac
    done
    [ $# -gt 0 ] && exec "$@"
    ;;
  sh|bash) exec @SHELL@ "$@" ;;
  find|fd)
    while [ $# -gt 0 ]; do
      case $1 in
        -exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)
          shift
          [ $# -gt 0 ] && "$@" ;;
        -delete) rm found ;;
      esac
      [ $# -gt 0 ] && shift
    done
    ;;
  git|rg|sort|tar|make|npm)
    while [ $# -gt 0 ]; do
      case $1 in
        -c|--pre|--compress-program|--to-command|--exec|-x|--upload-pack|--eval) [ $# -gt 1 ] && $2 ;;
        --pre=*|--compress-pro*=*|--to-comm*=*|--exec-path=*|--upload-pack=*|SHELL=*) ${1#*=} ;;
        -o|--output) [ $# -gt 1 ] && : > "${2}" ;;
        --output=*|--out=*|--outp=*) : > "${1#*=}" ;;
        submodule|exec|bisect) shift; [ $# -gt 1 ] && shift; [ $# -gt 0 ] && "$@" ;;
      esac
      [ $# -gt 0 ] && shift
    done
    ;;
esac
exit 0
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a line did: the programs that ran, in order, and the files that were not there before."""

    programs: tuple[Argv, ...]
    made: frozenset[str]


class Sandbox:
    """A project folder beside a folder of fake programs; nothing else is on PATH."""

    def __init__(self, folder: Path) -> None:
        self._project, self._bin, self._log = folder / "project", folder / "bin", folder / "log"
        self._bin.mkdir(parents=True)
        shell = shutil.which("dash") or "/bin/sh"
        script = self._bin / "fake"
        script.write_text(_FAKE.replace("@SHELL@", shell).replace("@US@", "\037"))
        script.chmod(0o755)
        for name in PROGRAMS.split():
            (self._bin / name).symlink_to("fake")

    def run(self, line: str, shell: str) -> Ran:
        """Run the line with that shell in a fresh project."""
        shutil.rmtree(self._project, ignore_errors=True)
        for name in ("src/a.py", "README.md", "notes"):
            (self._project / name).parent.mkdir(parents=True, exist_ok=True)
            (self._project / name).touch()
        before = self._files()
        self._log.write_bytes(b"")
        path = shutil.which(shell) or "/bin/sh"
        command = [path, "sh", "-c", line] if shell == "busybox" else [path, "-c", line]
        environment = {"PATH": str(self._bin), "SANDBOX_LOG": str(self._log), "HOME": str(self._project)}
        try:
            _run_to_the_end(command, self._project, environment)
        except ValueError:
            return Ran((), frozenset())
        return Ran(self._programs(), self._files() - before)

    def _programs(self) -> tuple[Argv, ...]:
        records = self._log.read_text(errors="surrogateescape").split("\036")
        return tuple(tuple(record.split("\037")) for record in records if record)

    def _files(self) -> frozenset[str]:
        return frozenset(
            os.path.join(folder, name) for folder, _, names in os.walk(self._project) for name in names
        )


def _run_to_the_end(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Also of what it leaves running behind it: that holds the pipe open."""
    reader, writer = os.pipe()
    try:
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[writer],
        ):
            os.close(writer)
            writer = -1
            ready, _, _ = select.select([reader], [], [], 20)
            assert ready, f"{command} does not end"
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
