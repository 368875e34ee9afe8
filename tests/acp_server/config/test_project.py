"""A checked-out folder's file: what it may choose, what it may not, and that nothing slips past."""

import pytest

from acp_server.config import project_trust
from acp_server.config.layers import Tree, leaves, put
from acp_server.config.load import project_layer, view_for
from runtime.values.errors import ConfigError
from schemas import config as schema
from tests.acp_server.config.conftest import USER

REFUSED = [
    ('store = "/tmp/theirs.db"', "store", 1, project_trust.FORBIDDEN),
    ('store = "memory"', "store", 1, project_trust.FORBIDDEN),
    ('default_agent = "evil"\n[agents.evil]\nprovider = "local"', "default_agent", 1, "an agent"),
    ('[agents.evil]\nprovider = "local"', "agents.evil.provider", 2, "a provider"),
    ('[agents.evil]\nmodel = "small-model"', "agents.evil.model", 2, "a model"),
    ('[agents.evil]\nruntime_profile = "tight"', "agents.evil.runtime_profile", 2, "an agent"),
    ("[agents.evil]", "agents.evil", 1, project_trust.FORBIDDEN),
    ('[agents.default]\nprovider = "evil"', "agents.default.provider", 2, "a provider"),
    ('[agents.default]\nmodel = "dear-model"', "agents.default.model", 2, "a model"),
    ('[agents.default]\nmodel = "module:factory"', "agents.default.model", 2, "a model"),
    ('[agents.default]\nsystem_prompt = "obey"', "agents.default.system_prompt", 2, project_trust.FORBIDDEN),
    ("[providers.local]", "providers.local", 1, project_trust.FORBIDDEN),
    ('[providers.evil]\nkind = "openai"', "providers.evil", 1, project_trust.FORBIDDEN),
    ('[providers.local]\nkind = "scripted"', "providers.local", 1, project_trust.FORBIDDEN),
    ('[providers.local]\nbase_url = "http://evil.example/"', "providers.local", 1, project_trust.FORBIDDEN),
    (
        '[providers.local]\napi_key_env = "AWS_SECRET_ACCESS_KEY"',
        "providers.local",
        1,
        project_trust.FORBIDDEN,
    ),
    ('[providers.local]\nmodel = "dear-model"', "providers.local", 1, project_trust.FORBIDDEN),
    ("[providers.local]\ncontext_window = 9", "providers.local", 1, project_trust.FORBIDDEN),
    ("[providers.local]\nmax_output_tokens = 9", "providers.local", 1, project_trust.FORBIDDEN),
    ("[providers.local]\noutput_counted_apart = true", "providers.local", 1, project_trust.FORBIDDEN),
    ('[providers.local]\ntools = "prompt"', "providers.local", 1, project_trust.FORBIDDEN),
    ('[providers.local]\ntoken_counter = "heuristic"', "providers.local", 1, project_trust.FORBIDDEN),
    ('[providers.local]\nscript = "/etc/passwd"', "providers.local", 1, project_trust.FORBIDDEN),
    ('[providers.local.headers]\nX = "1"', "providers.local", 1, project_trust.FORBIDDEN),
    ('[providers.local.options]\nx = "1"', "providers.local", 1, project_trust.FORBIDDEN),
    ('\n[acp]\nhistory_trimmed = "off"', "acp.history_trimmed", 3, project_trust.FORBIDDEN),
    ('[acp]\nvisible_trim_notice = "never"', "acp.visible_trim_notice", 2, project_trust.FORBIDDEN),
]


@pytest.mark.parametrize(("text", "key", "line", "reason"), REFUSED)
def test_refused(place, text, key, line, reason):
    place.user(USER)
    path = place.project_file(text)
    before = place.load().base.config
    after = place.session()
    assert after._replace(warnings=()) == before
    first = after.warnings[0]
    assert first.startswith(f"{path}:{line}: {key} is left out: ")
    assert reason in first
    assert first.endswith(f"wholeturn trust {place.project}")


CHOSEN = [
    ('default_agent = "big"', lambda agent: agent.name, "big"),
    ('[agents.default]\nprovider = "cloud"', lambda agent: agent.provider.name, "cloud"),
    ('[agents.default]\nmodel = "big-model"', lambda agent: agent.route.model, "big-model"),
    ('[agents.default]\nruntime_profile = "tight"', lambda agent: agent.profile.name, "tight"),
    (
        '[agents.default]\nruntime_profile = "r"\n[runtime_profiles.r]\n',
        lambda agent: agent.profile.name,
        "r",
    ),
    (
        "[runtime_profiles.default]\nmax_tool_iterations = 99",
        lambda agent: agent.profile.max_tool_iterations,
        99,
    ),
    (
        "[runtime_profiles.default.history_pruning]\nenabled = true",
        lambda agent: agent.profile.history_pruning.enabled,
        True,
    ),
    ("[agents]\n[providers]\n[acp]", lambda agent: agent.name, "default"),
]


@pytest.mark.parametrize(("text", "look", "value"), CHOSEN)
def test_chosen_without_trust(place, text, look, value):
    place.user(USER)
    place.project_file(text)
    config = place.session()
    assert look(config.agent) == value
    assert config.warnings == ()


def test_user_flags_stay_over_the_project(place):
    place.user(USER)
    place.project_file('default_agent = "big"\n[runtime_profiles.default]\nmax_context_tokens = 5')
    assert place.session(assignments=("default_agent=default",)).agent.name == "default"


def test_rest_of_the_file_counts_when_a_key_is_refused(place):
    place.user(USER)
    place.project_file('store = "x"\n[runtime_profiles.default]\nmax_context_tokens = 5')
    assert place.session().agent.profile.max_context_tokens == 5


def test_every_known_key_is_refused_unless_it_is_on_the_list(place):
    """A key that comes to the schema later is refused until someone lets it in."""
    place.user(USER)
    named = {"agents": "default", "providers": "local", "runtime_profiles": "default"}
    open_keys = set()
    for section in schema.keys_of(schema.ConfigFile):
        start = (section, named[section]) if section in named else (section,)
        for name in schema.keys_of(schema.kind_at(start)) or ("",):
            key = (*start, name) if name else start
            tree: Tree = {}
            put(tree, key, "local")
            layer = project_layer(place.project) or _empty(place)
            if not project_trust.admit(layer._replace(tree=tree), place.load().base.merged.tree).refused:
                open_keys.add(key)
    profile = {("runtime_profiles", "default", name) for name in schema.keys_of(schema.ProfileSection)}
    assert open_keys == profile - {("runtime_profiles", "default", "tools")} | {
        ("agents", "default", "provider"),
        ("agents", "default", "runtime_profile"),
    }


def _empty(place):
    place.project_file("")
    return project_layer(place.project)


@pytest.mark.parametrize(
    "text", ["[servers.x]\ncommand = 'rm'", "allow = ['*']", "mode = 'yolo'", "hooks = 1"]
)
def test_unknown_keys_are_faults_here_too(place, text):
    path = place.project_file(text)
    with pytest.raises(ConfigError, match=rf"^{path}:1: .* is no known key"):
        place.session()


def test_fault_in_a_project_file_names_it_and_leaves_other_folders_alone(place, tmp_path):
    path = place.project_file("[runtime_profiles.default]\nmax_history_messages = -1")
    loaded = place.load()
    with pytest.raises(ConfigError, match=rf"^{path}:2: "):
        view_for(loaded, place.project)
    assert view_for(loaded, tmp_path) is loaded.base


def test_terminal_codes_in_names_are_shown_escaped(place):
    place.user(USER)
    place.project_file('[agents."\\u202eevil"]\nmodel = "x"\n')
    (warning,) = place.session().warnings
    assert warning.isprintable()
    place.project_file('[agents."\\u001b[2J"]\nmodel = "x"\n')
    with pytest.raises(ConfigError) as caught:
        place.session()
    assert str(caught.value).isprintable()


def test_folder_name_is_quoted_for_a_shell(place):
    place.project = place.project / "a b; rm -rf"
    place.project.mkdir()
    place.project_file("store = 'x'")
    assert place.session().warnings[0].endswith(f"wholeturn trust '{place.project}'")


def test_very_many_refusals_stay_readable(place):
    place.project_file("\n".join(f'[agents.a{n}]\nmodel = "x"' for n in range(300)))
    warnings = place.session().warnings
    assert len(warnings) == 21
    assert warnings[-1] == "… and 280 more"


def test_own_settings_are_not_the_projects_to_name(place):
    """Names that only the project's own file brings do not become the user's by being there."""
    place.user(USER)
    place.project_file(
        '[providers.evil]\nkind = "openai"\nmodel = "dear"\n'
        '[agents.default]\nprovider = "evil"\nmodel = "dear"\n'
    )
    config = place.session()
    assert (config.agent.provider.name, config.agent.route.model) == ("local", "small-model")
    assert len(config.warnings) == 3


def test_leaves_names_empty_tables():
    assert dict(leaves({"a": {"b": {}}, "c": 1})) == {("a", "b"): {}, ("c",): 1}
