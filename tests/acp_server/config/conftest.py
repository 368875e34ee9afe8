"""A home and a project folder for settings, each test its own."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from acp_server.config.load import for_session, load_user_config, view_for
from acp_server.config.settings import Options, SessionConfig

USER = """\
[agents.default]
provider = "local"
[agents.big]
provider = "cloud"
model = "big-model"
[providers.local]
kind = "openai"
base_url = "http://127.0.0.1:8000/v1"
api_key_env = "LOCAL_KEY"
model = "small-model"
context_window = 16000
[providers.cloud]
kind = "openai"
model = "cloud-model"
"""


@dataclass
class Place:
    """The user's folder, a project's folder, and an environment that knows only of the first."""

    home: Path
    project: Path
    env: dict[str, str] = field(default_factory=dict)

    def user(self, text):
        path = self.home / "config.toml"
        path.write_text(text)
        return path

    def project_file(self, text):
        path = self.project / ".wholeturn.toml"
        path.write_text(text)
        return path

    def load(self, **flags):
        return load_user_config(Options(**flags), self.env)

    def session(self, **flags) -> SessionConfig:
        return for_session(self.load(**flags), self.project)

    def view(self, **flags):
        return view_for(self.load(**flags), self.project)


@pytest.fixture
def place(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    return Place(home, project, {"WHOLETURN_CONFIG_DIR": str(home), "XDG_DATA_HOME": str(tmp_path / "data")})
