"""`redact` in the settings: patterns of all sources, and what is wrong with one, with its place."""

import pytest

from acp_server.assembly.session_setup import make_setup
from runtime.ports import Provider
from runtime.providers.settings import ProviderSettings
from runtime.setup.redaction import MARK
from runtime.values.errors import ConfigError
from tests.acp_server.config.conftest import USER


async def no_provider(settings: ProviderSettings) -> Provider:
    """Nobody is asked here."""
    raise AssertionError


def settings(*patterns: str) -> str:
    """A user's file with these patterns."""
    listed = ", ".join(f"'{pattern}'" for pattern in patterns)
    return f"redact = [{listed}]\n{USER}"


def test_nothing_is_taken_out_unless_asked_for(place):
    place.user(USER)
    assert place.session().redact == ()
    setup = make_setup(place.session(), no_provider)
    assert setup.redaction.text("sk-1234") == "sk-1234"


def test_patterns_come_to_the_session(place):
    place.user(settings(r"sk-\w+", "(?i)password: *\\S+"))
    setup = make_setup(place.session(), no_provider)
    assert setup.redaction.text("a sk-12_x, Password: hunter2.") == f"a {MARK}, {MARK}"
    assert all(type(tool).__name__ == "RedactedTool" for tool in setup.tools.values())
    assert make_setup(place.session(), no_provider).tools == setup.tools


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("sk-(", "is no regular expression: missing )"),
        ("a*", "also fits an empty text"),
        ("x{99999999999}", "is no regular expression"),
    ],
)
def test_a_bad_pattern_is_named_with_its_place(place, pattern, complaint):
    place.user(settings("fine", pattern))
    with pytest.raises(ConfigError, match="redact") as caught:
        place.session()
    assert complaint in str(caught.value)
    assert "config.toml:1" in str(caught.value)


def test_what_is_no_list_of_texts_is_refused(place):
    place.user(f"redact = 'sk'\n{USER}")
    with pytest.raises(ConfigError, match="redact must be a list"):
        place.session()
    place.user(f"redact = [1]\n{USER}")
    with pytest.raises(ConfigError, match="redact must be a list of texts"):
        place.session()


def test_a_misspelt_key_is_told_the_right_one(place):
    place.user(f"redacts = ['x']\n{USER}")
    with pytest.raises(ConfigError, match='did you mean "redact"'):
        place.session()


def test_a_later_source_adds_and_takes_nothing_back(place):
    place.user(settings("one"))
    place.env["WHOLETURN_CONFIG_DIR"] = str(place.home)
    assert place.session(assignments=("redact=['two', 'one']",)).redact == ("one", "two")
    assert place.session(assignments=("redact=[]",)).redact == ("one",)


def test_a_folder_that_is_not_trusted_has_no_say(place):
    place.user(settings("one"))
    place.project_file("redact = []\n")
    config = place.session()
    assert config.redact == ("one",)
    assert any("redact" in warning for warning in config.warnings)
