"""A person's machine for the doctor: settings, a store, programs on PATH, all below one folder."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from acp_server.config.settings import Options
from acp_server.doctor.finding import Finding, Place, Read, Status
from acp_server.doctor.settings import read_settings


@dataclass
class Machine:
    """root: everything lies below it. env: more variables."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("config", "data", "work", "bin"):
            (self.root / name).mkdir()

    @property
    def place(self) -> Place:
        """As the doctor sees it."""
        own = {
            "HOME": str(self.root),
            "PATH": str(self.root / "bin"),
            "WHOLETURN_CONFIG_DIR": str(self.root / "config"),
            "WHOLETURN_DATA_DIR": str(self.root / "data"),
        }
        return Place({**own, **self.env}, self.root / "work", Options())

    @property
    def store(self) -> Path:
        """The store's file."""
        return self.root / "data" / "sessions.db"

    def settings(self, text: str) -> None:
        """Write the user's settings."""
        (self.root / "config" / "config.toml").write_text(text)

    def model_at(self, base_url: str, more: str = "") -> None:
        """A model server at an address."""
        self.settings(
            f'[providers.m]\nkind = "openai"\nmodel = "m"\nbase_url = {json.dumps(base_url)}\n{more}'
        )

    def program(self, name: str) -> Path:
        """A command on PATH."""
        path = self.root / "bin" / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    def read(self) -> Read:
        """Its settings, which must be readable."""
        read, told = read_settings(self.place)
        assert read is not None, told
        return read

    def snapshot(self) -> dict[str, tuple[int, float, bytes]]:
        """Everything that lies there, to be compared later: mode, time of change, content."""
        return {
            str(path.relative_to(self.root)): (
                path.stat().st_mode,
                path.stat().st_mtime,
                path.read_bytes() if path.is_file() else b"",
            )
            for path in sorted(self.root.rglob("*"))
        }


def rows(found: Iterable[Finding]) -> list[tuple[str, Status]]:
    """Check and status of each."""
    return [(finding.check, finding.status) for finding in found]


def only(found: Iterable[Finding], check: str) -> Finding:
    """The one finding of a check; whatever is wrong has a mend."""
    listed = list(found)
    assert [finding for finding in listed if finding.status != "ok" and not finding.mend] == []
    (one,) = [finding for finding in listed if finding.check == check]
    return one


def database(path: Path, *statements: str) -> None:
    """A database made by some other program."""
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
