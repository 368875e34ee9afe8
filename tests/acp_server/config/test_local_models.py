"""Sections of kind `local`: the window when none is stated, a start without a file, keys of other kinds."""

import pytest

from runtime.values.errors import ConfigError

AGENT = '[agents.default]\nprovider = "own"\n[providers.own]\nkind = "local"\n'


@pytest.mark.parametrize(
    ("lines", "window"),
    [
        ("", 8192),
        ('model = "smollm2"\n', 8192),
        ("options = { n_ctx = 2048 }\n", 2048),
        ("context_window = 4096\noptions = { n_ctx = 2048 }\n", 4096),
        ('model = "smollm2"\n[providers.own.models.other]\ncontext_window = 512\n', 8192),
    ],
)
def test_its_window_is_always_known(place, lines, window):
    place.user(AGENT + lines)
    agent = place.session().agent
    assert (agent.route.context_window, agent.provider.context_window) == (window, window)


def test_another_model_of_the_section_has_a_window_too(place):
    place.user(AGENT + 'model = "smollm2"\ncontext_window = 2048\n')
    assert place.session(model="mine").agent.route.context_window == 8192


def test_a_start_without_a_file(place):
    agent = place.session(provider="local", model="smollm2").agent
    assert (agent.provider.kind, agent.route.model, agent.route.context_window) == ("local", "smollm2", 8192)


@pytest.mark.parametrize("line", ['base_url = "http://h/v1"', 'api_key_env = "K"', 'script = "s.yaml"'])
def test_keys_that_it_does_not_read(place, line):
    place.user(AGENT + line + "\n")
    with pytest.raises(ConfigError, match="has no effect with kind local"):
        place.session()
