"""One thing that a check found, and the machine and settings that checks look at. Knows no check."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from acp_server.config.load import View
from acp_server.config.settings import Options

Status = Literal["ok", "note", "bad"]
"""note: it works, but not as well as it could. bad: it does not work as it should."""


NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Finding:
    """text: a sentence or a fact, never a secret. mend: what to do about it, '' for nothing."""

    check: str
    status: Status
    text: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where it is looked: the variables, the folder of a session, and the flags that change settings.

    encoding: of the terminal's text.
    """

    env: Mapping[str, str]
    folder: Path
    options: Options = NO_OPTIONS
    encoding: str = "utf-8"

    def program(self, name: str) -> str | None:
        """The path of a command as the server's children would find it."""
        return shutil.which(name, path=self.env.get("PATH", os.defpath))


@dataclass(frozen=True, slots=True)
class Read:
    """A place whose settings could be read."""

    place: Place
    view: View
