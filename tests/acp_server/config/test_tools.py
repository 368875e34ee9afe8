"""The agent's tools in the settings: which there are, what they may reach, which variables they withhold."""

import pytest

from acp_server.assembly.session_setup import make_setup
from acp_server.config.effective import settings_in_force
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ConfigError
from runtime.values.profiles import FEW_TOOLS, TOOLS
from tests.acp_server.config.conftest import USER


async def no_provider(settings: ProviderSettings):
    raise AssertionError("no model is asked")


def tools_of(config) -> tuple[str, ...]:
    return tuple(make_setup(config, no_provider).tools)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", TOOLS),
        ('[runtime_profiles.default]\npreset = "local_small"', FEW_TOOLS),
        ('[runtime_profiles.default]\ntools = ["list_dir", "read_file"]', ("list_dir", "read_file")),
        ('[runtime_profiles.default]\npreset = "local_small"\ntools = ["fetch_url"]', ("fetch_url",)),
        ("[runtime_profiles.default]\ntools = []", ()),
    ],
)
def test_a_profile_says_which_there_are(place, text, names):
    place.user(f"{USER}{text}")
    config = place.session()
    assert config.agent.profile.tools == names
    assert tools_of(config) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('tools = ["read_fil"]', 'names the tool "read_fil", which is not there; did you mean "read_file"?'),
        ('tools = "read_file"', "tools must be"),
        ("tools = [3]", "tools must be"),
    ],
)
def test_a_tool_that_is_not_there(place, text, said):
    path = place.user(f"[runtime_profiles.default]\n{text}")
    with pytest.raises(ConfigError) as caught:
        place.session()
    assert f"{path}:2: runtime_profiles.default.tools" in str(caught.value)
    assert said in str(caught.value)


def test_private_addresses_only_when_the_user_says_so(place):
    assert place.session().tools.private_addresses is False
    place.user("[fetch]\nprivate_addresses = true")
    assert place.session().tools.private_addresses is True


def test_a_project_that_is_not_trusted_gains_neither_tools_nor_reach(place):
    place.user(f'{USER}[runtime_profiles.default]\ntools = ["read_file"]')
    text = '[runtime_profiles.default]\ntools = ["run_command"]\nmax_context_tokens = 7\n'
    place.project_file(f"{text}[fetch]\nprivate_addresses = true")
    config = place.session()
    assert config.agent.profile.tools == ("read_file",)
    assert config.agent.profile.max_context_tokens == 7
    assert config.tools.private_addresses is False
    said = "\n".join(config.warnings)
    assert "runtime_profiles.default.tools is left out" in said
    assert "fetch.private_addresses is left out" in said


def test_variables_with_keys_of_ours(place):
    place.user(f'{USER}[mcp_servers.x]\nurl = "https://x.example/"\nbearer_env = "X_TOKEN"')
    names = place.session().tools.key_variables
    assert names == ("ANTHROPIC_API_KEY", "LOCAL_KEY", "OPENAI_API_KEY", "X_TOKEN")


def test_settings_in_force_show_them(place):
    place.user('[fetch]\nprivate_addresses = true\n[runtime_profiles.default]\ntools = ["read_file"]')
    found = {
        setting.key: (setting.value, setting.origin.line) for setting in settings_in_force(place.view(), {})
    }
    assert found["fetch", "private_addresses"] == (True, 2)
    assert found["runtime_profiles", "default", "tools"] == (("read_file",), 4)
