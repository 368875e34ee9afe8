"""Models of a provider: what is layered over what, whose window it is, and the chain of alternatives."""

import re
from pathlib import Path

import pytest

from runtime.values.errors import ConfigError
from runtime.values.model import Price

SETTINGS = """\
[agents.default]
provider = "cloud"
fallback = ["cloud/small", "box", "cloud/big", "box/other/1", "cloud/small"]
[agents.second]
provider = "box"
model = "third"
[providers.cloud]
kind = "openai"
model = "big"
context_window = 200000
max_output_tokens = 9000
tools = "prompt"
[providers.cloud.models.small]
context_window = 8000
max_output_tokens = 500
images = false
tools = "native"
price = { input = 1, output = 4.5, cached_read = 0.1, currency = "EUR" }
[providers.cloud.models.bare]
[providers.box]
kind = "openai"
base_url = "http://127.0.0.1:8000/v1"
model = "own"
"""


def test_a_models_keys_stand_over_its_providers(place):
    place.user(SETTINGS)
    models = {model.route.id: model for model in place.session().models}
    small, bare = models["cloud/small"], models["cloud/bare"]
    assert (small.route.context_window, small.route.max_output_tokens) == (8000, 500)
    assert (small.prompt_tools, small.images) == (False, False)
    assert small.price == Price(1, 4.5, cached_read=0.1, currency="EUR")
    assert (small.provider.model, small.provider.context_window) == ("small", 8000)
    assert (bare.route.max_output_tokens, bare.prompt_tools, bare.images) == (9000, True, True)
    assert bare.price is None


def test_a_window_is_never_lent_to_another_model(place):
    place.user(SETTINGS)
    windows = {model.route.id: model.route.context_window for model in place.session().models}
    assert windows["cloud/big"] == 200000
    assert windows["cloud/bare"] is None
    assert place.session(model="elsewhere").agent.route.context_window is None


def test_a_window_of_0_is_not_known_whatever_the_provider_says(place):
    place.user(SETTINGS + "[providers.cloud.models.big]\ncontext_window = 0\n")
    assert place.session().agent.route.context_window is None


def test_all_models_that_are_named_anywhere_the_agents_own_first(place):
    place.user(SETTINGS)
    assert [model.route.id for model in place.session().models] == [
        "cloud/big",
        "cloud/small",
        "cloud/bare",
        "box/own",
        "box/other/1",
        "box/third",
    ]
    assert place.session(model="new").models[0].route.id == "cloud/new"


def test_the_chain_is_in_order_without_repetitions_and_without_the_model_itself(place):
    place.user(SETTINGS)
    agent = place.session().agent
    assert [model.route.id for model in agent.fallback] == ["cloud/small", "box/own", "box/other/1"]
    small = agent.fallback[0]
    switched = agent.using(small)
    assert (switched.route, switched.provider, switched.images) == (small.route, small.provider, False)
    assert [model.route.id for model in switched.fallback] == ["box/own", "box/other/1"]


def test_a_provider_that_only_lists_models_means_the_first(place):
    place.user('[providers.p]\nkind = "openai"\n[providers.p.models."a/b"]\n[providers.p.models.c]\n')
    config = place.session()
    assert config.agent.route.model == "a/b"
    assert [model.route.id for model in config.models] == ["p/a/b", "p/c"]


def test_the_longest_name_of_a_provider_is_meant(place):
    place.user(
        'agents.default = { provider = "a", fallback = ["a/b/c"] }\n'
        'providers.a.kind = "openai"\n[providers."a/b"]\nkind = "openai"\n'
    )
    (model,) = place.session().agent.fallback
    assert (model.route.provider, model.route.model) == ("a/b", "c")


def test_profiles_are_the_agents_own_then_those_of_the_file_then_the_presets(place):
    place.user('[agents.default]\nruntime_profile = "b"\n[runtime_profiles.a]\n[runtime_profiles.b]\n')
    names = [profile.name for profile in place.session().profiles]
    assert names == ["b", "a", "tight", "local_small", "balanced", "unbounded"]


def test_nothing_configured_has_no_models(place):
    assert place.session().models == ()
    assert place.session().profiles[0] == place.session().agent.profile


FAULTS = [
    (
        'fallback = ["clod/small"]',
        'fallback names "clod/small", which is no model of a known provider',
    ),
    ('fallback = ["clod/small"]', 'did you mean "cloud/small"?'),
    ('fallback = ["cloud/"]', 'fallback names "cloud/"'),
    ('fallback = "cloud/small"', "fallback must be a list, but is text"),
    ("fallback = [1]", "fallback must be a list of texts in quotes"),
]


@pytest.mark.parametrize(("line", "says"), FAULTS)
def test_a_chain_that_leads_nowhere(place, line, says):
    path = place.user(SETTINGS.replace(SETTINGS.splitlines()[2], line))
    with pytest.raises(ConfigError) as caught:
        place.session()
    assert str(caught.value).startswith(f"{path}:3: agents.default.")
    assert says in str(caught.value)


PRICES = [
    ("input = -1", "price.input must be at least 0"),
    ("input = inf", "price.input must be a number that is finite"),
    ("inptu = 1", 'price.inptu is no known key; did you mean "input"?'),
    ("currency = 1", "price.currency must be text in quotes, but is a whole number"),
]


@pytest.mark.parametrize(("line", "says"), PRICES)
def test_a_price_that_is_none(place, line, says):
    place.user(f'[providers.p]\nkind = "openai"\n[providers.p.models.m]\nprice = {{ {line} }}\n')
    with pytest.raises(ConfigError, match=says):
        place.session()


def test_a_price_in_the_wrong_place_is_told_where_it_belongs(place):
    place.user('[providers.p]\nkind = "openai"\nprice = {}\n')
    with pytest.raises(ConfigError, match=r"did you mean providers\.NAME\.models\.NAME\.price\?"):
        place.session()


@pytest.mark.parametrize(
    "text", ['[agents.default]\nfallback = ["cloud/small"]', "[providers.cloud.models.small]\nimages = true"]
)
def test_a_project_that_is_not_trusted_adds_neither(place, text):
    place.user(SETTINGS)
    own = place.session()
    place.project_file(text)
    config = place.session()
    assert (config.agent, config.models) == (own.agent, own.models)
    assert "is left out" in config.warnings[0]


def test_a_project_may_choose_a_model_that_you_listed(place):
    place.user(SETTINGS)
    place.project_file('[agents.default]\nmodel = "small"\n')
    assert place.session().agent.route.id == "cloud/small"


def test_the_settings_in_the_readme_can_be_used(place):
    readme = Path(__file__).resolve().parents[3] / "README.md"
    blocks = re.findall(r"```toml\n(.*?)```", readme.read_text(), flags=re.DOTALL)
    assert len(blocks) > 1
    merged = "\n".join(blocks[1].replace("[agents.default]", "[agents.second]").splitlines())
    place.user(f'default_agent = "default"\n{blocks[0]}\n{merged}\n')
    assert "cloud/small" in [model.route.id for model in place.session().models]


def test_a_call_costs_what_its_tokens_cost():
    price = Price(10, 100, cached_read=1, cached_write=20)
    spent = price.of(input_tokens=1000, output_tokens=10, cached_read=600, cached_write=100)
    assert spent == pytest.approx((300 * 10 + 600 * 1 + 100 * 20 + 10 * 100) / 1e6)
    assert Price(10).of(input_tokens=1000, output_tokens=10, cached_read=600) == pytest.approx(0.01)
    assert Price(10, cached_read=0).of(input_tokens=5, output_tokens=0, cached_read=9) == 0
