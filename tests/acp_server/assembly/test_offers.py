"""What a session can be set to, out of the settings, and how a client is told of it."""

from typing import get_args

import pytest

from acp_server.acp.client_options import config_options
from acp_server.assembly.session_options import chosen, offers, still_there, with_choice
from acp_server.config.build import build
from acp_server.config.layers import Layer, named_origins
from acp_server.config.merge import merge
from acp_server.config.settings import SessionConfig
from runtime.providers.settings import BUDGETS, levels, with_level
from runtime.values.errors import InvalidParams
from runtime.values.profiles import AS_CONFIGURED, MODEL, PROFILE, THOUGHT_LEVEL, Choice
from schemas.config_values import ProviderKind
from tests.support.acp_schema import check_type

PROVIDERS = {
    "claude": {"kind": "anthropic", "model": "c", "context_window": 200_000},
    "gpt": {"kind": "openai_responses", "model": "g", "models": {"mini": {"images": False}}},
    "box": {"kind": "scripted", "script": "s.yaml"},
}


def settings(**more: object) -> SessionConfig:
    tree: dict[str, object] = {
        "agents": {"default": {"provider": "claude"}},
        "providers": PROVIDERS,
        "runtime_profiles": {"mine": {"max_context_tokens": 5000, "max_history_messages": 7}},
        **more,
    }
    layer = Layer("file", "f", "/", tree, named_origins("file", {}))
    return build(merge([layer]), {"HOME": "/h", "WHOLETURN_DATA_DIR": "/d"})


CONFIG = settings()
ALL = Choice("gpt/mini", "high", "mine")


def by_id(config: SessionConfig, choice: Choice = AS_CONFIGURED) -> dict[str, object]:
    return {str(option["id"]): option for option in config_options(offers(config, choice))}


def test_all_that_can_be_set_the_configured_value_first():
    found = {
        offer.id: (offer.current, [value.id for value in offer.values]) for offer in offers(CONFIG, Choice())
    }
    assert found == {
        MODEL: ("claude/c", ["claude/c", "gpt/g", "gpt/mini", "box"]),
        THOUGHT_LEVEL: ("default", ["default", "off", "low", "medium", "high"]),
        PROFILE: ("default", ["default", "mine", "tight", "local_small", "balanced", "unbounded"]),
    }


def test_what_was_chosen_is_current():
    assert [offer.current for offer in offers(CONFIG, ALL)] == ["gpt/mini", "high", "mine"]


def test_a_kind_without_levels_of_thought_offers_none():
    assert set(by_id(CONFIG, Choice("box"))) == {MODEL, PROFILE}
    assert set(by_id(CONFIG, Choice("box", "high"))) == {MODEL, PROFILE}


def test_nothing_configured_leaves_the_profiles():
    assert set(by_id(settings(agents={}, providers={}))) == {PROFILE}


@pytest.mark.parametrize("choice", [Choice(), ALL, Choice("box")])
def test_the_wire_form_is_acps(choice):
    found = config_options(offers(CONFIG, choice))
    check_type("SetSessionConfigOptionResponse", {"configOptions": found})
    assert [option["category"] for option in found][:1] == ["model"]


def test_setting_one_thing_leaves_the_others():
    assert chosen(CONFIG, ALL, MODEL, "gpt/g") == Choice("gpt/g", "high", "mine")
    assert chosen(CONFIG, ALL, PROFILE, "tight") == Choice("gpt/mini", "high", "tight")
    assert chosen(CONFIG, ALL, MODEL, "claude/c") == Choice("", "high", "mine")


REFUSED = [
    ("modl", "x", "there is no such option; there are mode, model, thought_level, profile"),
    (MODEL, "gpt", "model has no such value; it may be claude/c, gpt/g, gpt/mini, box"),
    (THOUGHT_LEVEL, "", "thought_level has no such value; it may be default, off, low, medium, high"),
    (PROFILE, "Tight", "profile has no such value; it may be default, mine, tight"),
]


@pytest.mark.parametrize(("offer", "value", "says"), REFUSED)
def test_what_is_not_on_offer_is_refused_with_what_is(offer, value, says):
    with pytest.raises(InvalidParams, match=says):
        chosen(CONFIG, Choice(), offer, value)


def test_a_level_of_another_kind_cannot_be_set():
    with pytest.raises(InvalidParams, match="it may be default, low, medium, high"):
        chosen(CONFIG, Choice("gpt/g"), THOUGHT_LEVEL, "off")
    with pytest.raises(InvalidParams, match="there are mode, model, profile"):
        chosen(CONFIG, Choice("box"), THOUGHT_LEVEL, "low")


def test_a_choice_becomes_the_agents_settings():
    agent = with_choice(CONFIG, ALL).agent
    assert agent.route is not None
    assert agent.provider is not None
    assert (agent.route.id, agent.images, agent.profile.name) == ("gpt/mini", False, "mine")
    assert agent.provider.options == {"extra_body": {"reasoning": {"effort": "high"}}}
    assert with_choice(CONFIG, Choice()) == CONFIG


def test_a_stored_choice_is_kept_as_far_as_it_is_still_there():
    kept, lost = still_there(CONFIG, ALL)
    assert (kept, lost) == (ALL, [])
    kept, lost = still_there(CONFIG, Choice("gone/x", "off", "mine"))
    assert kept == Choice("", "off", "mine")
    assert lost == ["The model 'gone/x' of this session is not there any more."]


# ---------------------------------------------------------------- levels of thought


def provider(kind: ProviderKind, **options: object):
    tree = settings(providers={"p": {"kind": kind, "model": "m", "options": options}}, agents={})
    assert tree.agent.provider is not None
    return tree.agent.provider


@pytest.mark.parametrize("kind", get_args(ProviderKind))
def test_every_level_changes_the_options_and_any_other_word_does_not(kind):
    settings_ = provider(kind)
    for level in levels(settings_):
        changed = with_level(settings_, level)
        assert level == "off" or changed.options != settings_.options
    assert with_level(settings_, "immense") == settings_


def test_what_else_is_in_the_options_stays():
    given = provider(
        "openai_responses", extra_body={"a": 1, "reasoning": {"summary": "auto", "effort": "low"}}
    )
    body = {"a": 1, "reasoning": {"summary": "auto", "effort": "high"}}
    assert with_level(given, "high").options == {"extra_body": body}
    chat = provider("openai", idle_timeout=5, extra_body={"a": 1})
    assert with_level(chat, "low").options == {
        "idle_timeout": 5,
        "extra_body": {"a": 1, "reasoning_effort": "low"},
    }


def test_thinking_that_was_budgeted_can_be_switched_off():
    given = provider("anthropic", thinking_budget=4000, prompt_cache=False)
    assert with_level(given, "off").options == {"prompt_cache": False}
    assert with_level(given, "low").options == {"prompt_cache": False, "thinking_budget": BUDGETS["low"]}


def test_thinking_that_is_written_out_by_hand_is_left_alone():
    given = provider("anthropic", extra_body={"thinking": {"type": "enabled", "budget_tokens": 5000}})
    assert levels(given) == ()
