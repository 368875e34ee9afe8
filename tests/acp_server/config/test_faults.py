"""Every kind of fault, by its sentence: file, line, key, and the nearest real one. All of a file at once."""

import os

import pytest

from runtime.values.errors import ConfigError
from tests.acp_server.config.conftest import USER

P = '[providers.p]\nkind = "openai"\n'
R = "[runtime_profiles.r]\n"
PRUNING = "[runtime_profiles.r.history_pruning]\n"

# text of the file, line, what the message says after "FILE:LINE: "
CASES = [
    ("a = ", 1, "is not valid TOML: Invalid value"),
    ('x = 1\ny = "open', 2, "is not valid TOML: "),
    ("x = 1\nx = 2", 2, "is not valid TOML: Cannot overwrite a value"),
    ("d = 2024-99-01", 1, "is not valid TOML: "),
    ("agent = 1", 1, 'agent is no known key; did you mean "agents"?'),
    (
        f"{R}\nmax_context_token = 1",
        3,
        'runtime_profiles.r.max_context_token is no known key; did you mean "max_context_tokens"?',
    ),
    (
        "[agents.a]\nmax_context_tokens = 1",
        2,
        "agents.a.max_context_tokens is no known key here; did you mean "
        "runtime_profiles.NAME.max_context_tokens?",
    ),
    (
        "contxt_window = 1",
        1,
        "contxt_window is no known key; the nearest is providers.NAME.context_window",
    ),
    ("zzzzqqqq = 1", 1, "zzzzqqqq is no known key"),
    ('"a b" = 1', 1, '"a b" is no known key'),
    (f'{P}api_key = "sk-secret"', 3, "providers.p.api_key is no known key; a key itself never stands"),
    ("default_agent = 5", 1, "default_agent must be text in quotes, but is a whole number"),
    ("agents = 5", 1, "agents must be a table, but is a whole number"),
    ("\n[[agents]]\n", 2, "agents must be a table, but is a list"),
    ("agents.a = true", 1, "agents.a must be a table, but is true or false"),
    ('[agents.""]\nmodel = "m"', 1, 'agents."" must be one line of text that is not blank'),
    ('default_agent = "\\u001b[1m"', 1, "default_agent must be one line of text that is not blank"),
    ('default_agent = "  "', 1, "default_agent must be one line of text that is not blank"),
    (f'{R}max_context_tokens = "12000"', 2, "max_context_tokens must be a whole number, but is text"),
    (f"{R}max_context_tokens = 1.5", 2, "must be a whole number, but is a number with a fraction"),
    (f"{R}max_context_tokens = true", 2, "must be a whole number, but is true or false"),
    (f"{R}max_context_tokens = 2024-01-01", 2, "must be a whole number, but is a date or a time"),
    (f"{R}max_context_tokens = [1]", 2, "must be a whole number, but is a list"),
    (f"{R}max_context_tokens = -1", 2, "must be at least 0, but is -1"),
    (f"{R}max_context_tokens = {10**30}", 2, "must be at most 9007199254740991, but is 1000"),
    (f"{R}max_history_messages = -5", 2, "must be at least 0, but is -5"),
    (f"{R}max_tool_iterations = 0", 2, "must be at least 1, but is 0"),
    (f"{R}trim_slack_ratio = 1.0", 2, "must be less than 1.0, but is 1.0"),
    (f"{R}trim_slack_ratio = -0.1", 2, "must be at least 0.0, but is -0.1"),
    (f"{R}trim_slack_ratio = nan", 2, "but is nan"),
    (f'{R}context_compact_ratio = "x"', 2, "must be a number, but is text"),
    (f'{R}history_unit = "turn"', 2, 'must be one of turns, messages; did you mean "turns"?'),
    (f"{R}history_unit = 3", 2, "must be one of turns, messages, but is a whole number"),
    (f'{R}preset = "tigth"', 2, 'tight, local_small, balanced, unbounded; did you mean "tight"?'),
    (f'{R}running_turn_overflow = "drop"', 2, "must be one of fail, shorten"),
    (f"{PRUNING}enabled = 1", 2, "enabled must be true or false, but is a whole number"),
    (f"{PRUNING}max_token = 1", 2, 'history_pruning.max_token is no known key; did you mean "max_tokens"?'),
    (f"{R}history_pruning = true", 2, "history_pruning must be a table, but is true or false"),
    (
        '[providers.p]\nkind = "opnai"',
        2,
        'must be one of openai, openai_responses, anthropic, ollama, local, scripted; did you mean "openai"?',
    ),
    (f'{P}base_url = "127.0.0.1:80"', 3, "must be an http:// or https:// address"),
    (f'{P}base_url = "http:///v1"', 3, "must be an http:// or https:// address"),
    (f'{P}base_url = "http://h/a b"', 3, "must be an http:// or https:// address"),
    (f'{P}api_key_env = "sk-abc"', 3, "must be the name of an environment variable"),
    (f'{P}headers = {{ "a b" = "x" }}', 3, "must be a header name with a value in plain ASCII"),
    (f'{P}headers = {{ A = "x\\ny" }}', 3, "must be a header name with a value in plain ASCII"),
    (f"{P}options = {{ a = 2024-01-01 }}", 3, "must hold text, numbers, true, false, lists, tables only"),
    (f"{P}max_output_tokens = 0", 3, "must be at least 1, but is 0"),
    ('[acp]\nhistory_trimmed = "of"', 2, 'must be one of always, negotiated, off; did you mean "off"?'),
    ('[acp]\nvisible = "auto"', 2, 'acp.visible is no known key; did you mean "visible_trim_notice"?'),
    ('[agents.a]\nsystem_prompt = "\\u0000"', 2, "must not hold a NUL character"),
    # names that lead nowhere, and what is missing or has no effect
    (
        f'{P}\n[agents.a]\nprovider = "q"',
        5,
        'agents.a.provider names the provider "q", which is not there (there is p)',
    ),
    ('[agents.a]\nprovider = "q"', 2, 'names the provider "q", which is not there'),
    ('[providers.local]\nkind = "openai"\n[agents.a]\nprovider = "lcal"', 4, 'did you mean "local"?'),
    (
        '[agents.a]\nruntime_profile = "tigth"',
        2,
        'names the runtime profile "tigth", which is not there; did you mean "tight"?',
    ),
    (
        'default_agent = "b"\n[agents.a]\n',
        1,
        'default_agent names the agent "b", which is not there (there is a)',
    ),
    (
        '\n[providers.p]\nmodel = "m"',
        2,
        "providers.p needs a kind: openai or openai_responses or anthropic or ollama or local or scripted",
    ),
    ('[providers.p]\nkind = "scripted"', 1, "providers.p needs a script: the file that it plays"),
    (f'{P}script = "x"', 3, "providers.p.script has no effect with kind openai; it is for scripted"),
    (
        '[providers.p]\nkind = "scripted"\nscript = "s"\nbase_url = "http://h"',
        4,
        "base_url has no effect with kind scripted; it is for openai, openai_responses, anthropic, ollama",
    ),
    (
        f"{P}[providers.q]\nkind = 'openai'\n[agents.default]\n",
        5,
        "agents.default.provider is not set; the providers are p, q",
    ),
    (
        'store = "mysql://h/db"',
        1,
        'store must be a file\'s path, "memory" or an address that begins with postgresql://',
    ),
]


@pytest.mark.parametrize(("text", "line", "says"), CASES)
def test_fault(place, text, line, says):
    path = place.user(text)
    with pytest.raises(ConfigError) as caught:
        place.load()
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert says in message
    assert "\n" not in message
    assert "secret" not in message


def test_agents_without_a_default(place):
    place.user("[agents.a]\n[agents.b]\n")
    with pytest.raises(ConfigError, match="default_agent is not set; the agents are a, b"):
        place.load()


def test_all_faults_of_a_file_in_the_order_of_its_lines(place):
    path = place.user(
        'defualt_agent = "x"\n[runtime_profiles.r]\nmax_context_tokens = -1\n[agents.a]\nprovider = "none"\n'
        "[acp]\nhistory_trimmed = 7\n"
    )
    with pytest.raises(ConfigError) as caught:
        place.load()
    head, *lines = str(caught.value).split("\n")
    assert head == "4 settings cannot be used:"
    assert [line.split(": ")[0] for line in lines] == [f"{path}:{n}" for n in (1, 3, 7, 5)]


def test_faults_of_all_sources_together(place):
    place.user("bad_one = 1")
    place.env["WHOLETURN_ACP__BAD_TWO"] = "x"
    with pytest.raises(ConfigError) as caught:
        place.load(assignments=("bad_three=1",))
    message = str(caught.value)
    assert "config.toml:1: bad_one" in message
    assert "WHOLETURN_ACP__BAD_TWO: acp.bad_two is no known key" in message
    assert "--set bad_three: bad_three is no known key" in message


def test_very_many_faults_stay_readable(place):
    place.user("\n".join(f"zq{n} = 1" for n in range(20_000)))
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert len(str(caught.value).split("\n")) == 22
    assert str(caught.value).endswith("… and 19980 more")


@pytest.mark.parametrize("text", ["model", "=x", "a b=1", "a.=1", "[a]=1"])
def test_assignment_that_is_none(place, text):
    with pytest.raises(ConfigError, match=r"--set .*: write it as key=value"):
        place.load(assignments=(text,))


def test_file_that_cannot_be_read(place):
    path = place.home / "config.toml"
    path.mkdir()
    with pytest.raises(ConfigError, match=rf"^{path}: cannot be read: Is a directory"):
        place.load()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipe_in_place_of_a_file_is_not_waited_for(place):
    os.mkfifo(place.project / ".wholeturn.toml")
    with pytest.raises(ConfigError, match="is not a regular file"):
        place.session()


def test_file_that_is_no_text(place):
    (place.home / "config.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(ConfigError, match=r"config\.toml:2: is not valid UTF-8"):
        place.load()


def test_file_that_is_too_large(place):
    place.user("#" * (256 * 1024 + 1))
    with pytest.raises(ConfigError, match="is larger than 262144 bytes"):
        place.load()


DEEP = [
    ("a = " + "[" * 5000, "is nested too deeply|is not valid TOML"),
    ("a = " + "[" * 40 + "]" * 40, "is nested too deeply"),
    ("[" + "a." * 31 + "b]\n" + "c." * 31 + "d = 1", "is nested too deeply"),
    ("x = 1\n" + "a." * 100_000 + "a = 1", "config.toml:2: a key has more than 32 parts"),
    ("x = { " + "'a' . " * 20_000 + "a = 1 }", "config.toml:1: a key has more than 32 parts"),
    ("x = {" + '"".' * 20_000 + "a = 1 }", "config.toml:1: a key has more than 32 parts"),
    ("x = {" + '"a.b".' * 20_000 + "a = 1 }", "config.toml:1: a key has more than 32 parts"),
    ('x = [ """\n\' """, { ' + '"a.b".' * 20_000 + "a = 1 } ] # '", "config.toml:2: a key has more than 32"),
    ("# '''\n" + "a." * 20_000 + "a = 1", "config.toml:2: a key has more than 32 parts"),
]


@pytest.mark.parametrize(("text", "says"), DEEP)
def test_file_that_is_nested_too_deeply(place, text, says):
    place.user(text)
    with pytest.raises(ConfigError, match=says):
        place.load()


def test_dots_in_a_text_are_no_key(place):
    place.user('[agents.default]\nsystem_prompt = """\n' + "." * 500 + "\n" + "and so on. " * 90 + '"""')
    assert place.session().agent.system_prompt.startswith("...")


def test_variables_and_flags_that_are_nested_too_deeply(place):
    with pytest.raises(ConfigError, match="write it as key=value"):
        place.load(assignments=(".".join("a" * 2000) + "=1",))
    deep = "[" * 60 + "]" * 60
    place.user('[providers.x]\nkind = "openai"')
    assert place.session(assignments=(f"providers.x.options.y={deep}",)).agent.provider.options == {"y": deep}
    place.env["WHOLETURN_" + "__".join("a" * 2000)] = "1"
    with pytest.raises(ConfigError, match="nested too deeply"):
        place.load()


def test_byte_order_mark_and_foreign_line_ends(place):
    (place.home / "config.toml").write_bytes(b"\xef\xbb\xbf[acp]\r\n\r\nhistory_trimmed = 'no'\r\n")
    with pytest.raises(ConfigError, match=r"config\.toml:3: acp\.history_trimmed"):
        place.load()


REMARKS = [
    (f"{R}context_compact_ratio = {value}", 2, f"context_compact_ratio = {shown} counts as unset")
    for value, shown in [("0", "0"), ("-0.5", "-0.5"), ("1.01", "1.01"), ("nan", "nan"), ("inf", "inf")]
] + [
    (f"{PRUNING}keep_recent = 4", 2, "keep_recent has no effect any more; use keep_tool_context_turns"),
    (f"{PRUNING}collapse_tool_results = true", 2, "has no effect any more; use keep_tool_context_turns"),
]


@pytest.mark.parametrize(("text", "line", "says"), REMARKS)
def test_remark(place, text, line, says):
    path = place.user(f"{text}\n")
    (warning,) = place.session(profile="r").warnings
    assert warning.startswith(f"{path}:{line}: runtime_profiles.r.")
    assert says in warning


def test_fault_that_a_stronger_source_hides_is_told_all_the_same(place):
    place.user(USER + "[runtime_profiles.default]\nmax_context_tokens = -1")
    with pytest.raises(ConfigError, match="must be at least 0"):
        place.load(assignments=("runtime_profiles.default.max_context_tokens=1",))
