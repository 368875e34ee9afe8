"""Settings of retention in a turn and across goals: what is read, what is wrong, what a project may say."""

import pytest
import trio

from acp_server.assembly.session_setup import make_setup
from acp_server.config.effective import settings_in_force
from runtime.trimming.round_trimmers import FoldedRounds, NewestRounds
from runtime.values.errors import ConfigError
from runtime.values.profiles import PRESETS, TOOLS, LoopContext
from tests.acp_server.config.conftest import USER
from tests.support.fakes import ask, make_session, script

PROFILE = "[runtime_profiles.default]\n"
CONTEXT = "[runtime_profiles.default.loop_context]\n"


def test_everything_is_read(place):
    place.user(
        f'{USER}{PROFILE}retention = "head-tail"\ndropped_turns = "summarize"\nsummary_model = "cloud"\n'
        f'{CONTEXT}strategy = "summarize"\nmax_tokens = 8000\nkeep_last = 4\nmodel = "cloud/tiny"'
    )
    config = place.session()
    profile = config.agent.profile
    assert (profile.retention, profile.dropped_turns) == ("head-tail", "summarize")
    assert profile.loop_context == LoopContext("summarize", 4, 8000, "cloud/tiny")
    assert profile.tools == (*TOOLS, "set_goal")
    assert {text: model.route.id for text, model in config.helpers} == {
        "cloud": "cloud/cloud-model",
        "cloud/tiny": "cloud/tiny",
    }
    setup = make_setup(config, asked_for([]))
    assert isinstance(setup.trimmer, FoldedRounds)
    assert setup.summarise is not None
    assert setup.summarise.route.id == "cloud/cloud-model"
    shown = {one.key[-1]: one.value for one in settings_in_force(place.view(), {})}
    assert shown["strategy"] == "summarize"
    assert shown["summary_model"] == "cloud"


def asked_for(names: list[str]):
    async def provider(settings):
        await trio.lowlevel.checkpoint()
        names.append(settings.model)
        return script({"text": "short", "repeat": True})

    return provider


async def test_the_named_model_writes_the_summary(place):
    place.user(
        f'{USER}{CONTEXT}strategy = "summarize"\nmax_tokens = 8000\nkeep_last = 4\nmodel = "cloud/tiny"'
    )
    names: list[str] = []
    setup = make_setup(place.session(), asked_for(names))
    assert isinstance(setup.trimmer, FoldedRounds)
    answer = await setup.trimmer.summarise("be short", "a text")
    assert (answer.text, answer.route_id, names) == ("short", "cloud/tiny", ["tiny"])


def test_without_the_section_there_is_nothing(place):
    place.user(USER)
    config = place.session()
    setup = make_setup(config, asked_for([]))
    assert (setup.trimmer, config.helpers, config.agent.profile.loop_context) == (None, (), None)
    assert config.agent.profile.tools == TOOLS


def test_slack_reaches_the_trimmer(place):
    place.user(f'{USER}{PROFILE}trim_slack_ratio = 0.5\n{CONTEXT}strategy = "count"\nkeep_last = 4')
    made: object = make_setup(place.session(), asked_for([])).trimmer
    assert made == NewestRounds(4, 0.5)


def test_tools_that_are_named_are_all_there_are(place):
    place.user(f'{USER}{PROFILE}retention = "head-tail"\ntools = ["read_file"]')
    assert place.session().agent.profile.tools == ("read_file",)
    place.user(f'{USER}{PROFILE}tools = ["read_file", "set_goal"]')
    assert place.session().agent.profile.tools == ("read_file", "set_goal")


FAULTS = [
    ("keep_last = 4", "loop_context needs a strategy: count or token-budget or summarize"),
    ('strategy = "count"', "loop_context needs keep_last with the strategy count"),
    ('strategy = "summarize"\nkeep_last = 4', "needs max_tokens with the strategy summarize"),
    ('strategy = "cuont"\nkeep_last = 4', 'the strategy "cuont", which is not there; did you mean "count"?'),
    ('strategy = "count"\nkeep_last = 0', "keep_last must be"),
    ('strategy = "count"\nkeep_lst = 3', 'keep_lst is no known key; did you mean "keep_last"?'),
    (
        'strategy = "summarize"\nkeep_last = 4\nmax_tokens = 9\nmodel = "nobody/x"',
        'names "nobody/x", which is no model of a known provider',
    ),
]


@pytest.mark.parametrize(("text", "why"), FAULTS)
def test_what_is_wrong_is_named_with_its_line(place, text, why):
    path = place.user(f"{USER}{CONTEXT}{text}")
    with pytest.raises(ConfigError) as caught:
        place.session()
    assert why in str(caught.value)
    assert f"{path}:" in str(caught.value)


def test_a_key_that_the_strategy_does_not_read_is_remarked_on(place):
    place.user(f'{USER}{CONTEXT}strategy = "count"\nkeep_last = 4\nmax_tokens = 9')
    (warning,) = place.session().warnings
    assert "max_tokens has no effect with the strategy count" in warning


def test_a_model_that_nobody_asks_is_remarked_on(place):
    place.user(f'{USER}{PROFILE}summary_model = "cloud"')
    (warning,) = place.session().warnings
    assert 'summary_model has no effect without dropped_turns = "summarize"' in warning


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('strategy = "count"\nkeep_last = 4', True),
        ('strategy = "os:system"', False),
        ('strategy = "installed"', False),
        ('strategy = "count"\nkeep_last = 4\nmodel = "cloud"', True),
        ('strategy = "count"\nkeep_last = 4\nmodel = "cloud/dear"', False),
        ('strategy = "count"\nkeep_last = 4\n[runtime_profiles.default.loop_context.options]\nx = 1', False),
    ],
)
def test_a_project_chooses_among_limits_and_brings_no_code(place, text, kept):
    place.user(f'{USER}{CONTEXT}strategy = "summarize"\nkeep_last = 1\nmax_tokens = 5')
    place.project_file(f"{CONTEXT}{text}")
    warnings = place.session().warnings
    assert any("is left out" in warning for warning in warnings) is not kept


WRITTEN = ("[runtime_profiles.default]", "[runtime_profiles.default]\nmax_context_tokens = 32000")


@pytest.mark.parametrize("variable", [{}, {"WHOLETURN_BASE_URL": "http://127.0.0.1:8000/v1"}])
def test_a_profile_that_nobody_wrote_trims_more_at_once(place, variable):
    place.env |= variable
    assert place.session().agent.profile.trim_slack_ratio == 0.2
    assert place.session().profiles[0] == place.session().agent.profile
    assert slack_line(place.view()) == (0.2, "built-in profile")


@pytest.mark.parametrize("text", WRITTEN)
def test_one_that_somebody_wrote_has_no_slack_unless_it_says_so(place, text):
    place.user(text)
    assert place.session().agent.profile.trim_slack_ratio == 0.0
    assert slack_line(place.view()) == (0.0, "default")
    place.user(f"{text}\ntrim_slack_ratio = 0.1")
    assert slack_line(place.view()) == (0.1, f"{place.home}/config.toml:{text.count(chr(10)) + 2}")


def test_the_presets_have_the_slack_they_had(place):
    shares = {name: place.session(profile=name).agent.profile.trim_slack_ratio for name in PRESETS}
    assert shares == {"tight": 0.2, "local_small": 0.2, "balanced": 0.0, "unbounded": 0.2}


def slack_line(view):
    """The slack in force and where it is from, as `config show` has it."""
    key = ("runtime_profiles", "default", "trim_slack_ratio")
    found = next(setting for setting in settings_in_force(view, {}) if setting.key == key)
    return found.value, str(found.origin)


async def test_a_long_talk_with_nothing_configured_is_trimmed_now_and_then(place):
    """Turns of 1,000 tokens, a budget of 32,000: without slack there is a trim in every turn from then on."""
    session, client, _ = await make_session(
        script({"text": "y" * 1996, "repeat": True}), profile=place.session().agent.profile, window=None
    )
    for _ in range(31):
        await ask(session, "x" * 1996)
    before = len(client.trims())
    for _ in range(20):
        await ask(session, "x" * 1996)
    assert before <= 1
    assert len(client.trims()) - before in (3, 4)
