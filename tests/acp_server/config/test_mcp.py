"""Settings of MCP servers: what becomes of them, what is wrong with them, what is shown, who may set them."""

import pytest

from acp_server.assembly.mcp_servers import of_client
from acp_server.config import project_trust
from acp_server.config.effective import settings_in_force
from runtime.mcp.settings import McpSettings, ServerSettings, Tuning
from runtime.values.errors import ConfigError
from schemas.acp.mcp import SERVERS

BOTH = """\
[mcp]
first_turn_wait = 2
max_tools = 30
max_tool_tokens = 900
[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git", "--token", "SECRET", "--api-key=SECRET", "plain"]
env = { GIT_TOKEN = "SECRET" }
pass_env = ["SSH_AUTH_SOCK"]
cwd = "tools"
tools = ["git_status"]
connect_timeout = 90
call_timeout = 7
[mcp_servers.docs]
url = "https://user:SECRET@example.com/mcp?key=SECRET"
type = "sse"
headers = { X-Key = "SECRET" }
bearer_env = "DOCS_TOKEN"
[mcp_servers.from_editor]
enabled = false
"""


def test_nothing_said(place):
    assert place.session().mcp is None
    place.user("[acp]\n")
    assert place.session().mcp is None


def test_all_keys(place):
    path = place.user(BOTH)
    found = place.session().mcp
    assert found is not None
    git, docs = found.servers
    assert git == ServerSettings(
        "git",
        command="uvx",
        args=("mcp-server-git", "--token", "SECRET", "--api-key=SECRET", "plain"),
        env={"GIT_TOKEN": "SECRET"},
        pass_env=("SSH_AUTH_SOCK",),
        cwd=str(path.parent / "tools"),
    )
    assert (docs.kind, docs.headers, docs.bearer_env) == ("sse", {"X-Key": "SECRET"}, "DOCS_TOKEN")
    assert found.tuning["git"] == Tuning(True, ("git_status",), 90, 7)
    assert (found.first_turn_wait, found.max_tools, found.max_tool_tokens) == (2, 30, 900)
    named = (ServerSettings("from_editor", command="x"), ServerSettings("git", command="theirs"))
    used = {server.name: server for server in found.for_session(named)}
    assert list(used) == ["git", "docs"]
    assert (used["git"].command, used["git"].tools, used["git"].connect_timeout) == (
        "theirs",
        ("git_status",),
        90,
    )


def test_an_address_alone_is_streamable_http(place):
    place.user('[mcp_servers.a]\nurl = "http://127.0.0.1:1/mcp"\n')
    assert place.session().mcp == McpSettings(
        servers=(ServerSettings("a", "http", url="http://127.0.0.1:1/mcp"),), tuning={"a": Tuning()}
    )


FAULTS = [
    ('command = "x"\nurl = "http://h"', "has a command and a url; it is reached by one"),
    ('url = "http://h"\nargs = ["a"]', "mcp_servers.s.args has no effect without command"),
    ('command = "x"\nbearer_env = "A"', "mcp_servers.s.bearer_env has no effect without url"),
    ('headers = { A = "b" }', "mcp_servers.s.headers has no effect without url"),
    ('url = "ftp://h"', "mcp_servers.s.url must be an http:// or https:// address"),
    ('command = "x"\nargs = "a"', "mcp_servers.s.args must be a list, but is text"),
    ('command = "x"\nargs = [1]', "mcp_servers.s.args must be a list of texts in quotes"),
    ('command = "x"\nenv = { "A B" = "c" }', "mcp_servers.s.env"),
    ('command = "x"\npass_env = ["A=B"]', "must hold names of environment variables"),
    ('url = "http://h"\nbearer_env = "sk 123"', "never the token itself"),
    ('url = "http://h"\ntype = "https"', "must be one of http, sse"),
    ('comand = "x"', 'is no known key; did you mean "command"?'),
    ("connect_timeout = 0", "must be at least 1"),
]


@pytest.mark.parametrize(("text", "told"), FAULTS)
def test_faults(place, text, told):
    path = place.user(f"[mcp_servers.s]\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert told in caught.value.message
    assert caught.value.message.startswith(f"{path}:")
    assert "sk 123" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[mcp_servers.git]\ncommand = "rm"', "mcp_servers.git"),
        ('[mcp_servers.git]\nurl = "http://evil.example"', "mcp_servers.git"),
        ("[mcp_servers.docs]\nenabled = true", "mcp_servers.docs"),
        ('[mcp_servers.git]\ntools = ["git_push"]', "mcp_servers.git"),
        ('[mcp_servers.new]\ncommand = "rm"', "mcp_servers.new"),
        ("[mcp]\nfirst_turn_wait = 600", "mcp.first_turn_wait"),
        ("[mcp]\nmax_tools = 1", "mcp.max_tools"),
        ("[mcp]\nmax_tool_tokens = 1", "mcp.max_tool_tokens"),
    ],
)
def test_a_project_that_is_not_trusted_sets_none_of_it(place, text, key):
    place.user(BOTH)
    path = place.project_file(text)
    before = place.load().base.config
    after = place.session()
    assert after.mcp == before.mcp
    assert after.warnings[0].startswith(f"{path}:2: {key} is left out: {project_trust.FORBIDDEN}") or (
        after.warnings[0].startswith(f"{path}:1: {key} is left out: {project_trust.FORBIDDEN}")
    )


def test_what_is_shown_holds_no_secret(place):
    place.user(BOTH)
    shown = {".".join(setting.key): setting.value for setting in settings_in_force(place.view(), {})}
    assert "SECRET" not in str(shown)
    assert shown["mcp_servers.git.args"] == [
        "mcp-server-git",
        "--token",
        "(hidden)",
        "--api-key=(hidden)",
        "plain",
    ]
    assert shown["mcp_servers.docs.url"] == "https://(hidden)@example.com/mcp?(hidden)"
    assert shown["mcp.max_tools"] == 30


def test_variables(place):
    place.env["WHOLETURN_MCP_SERVERS__A__COMMAND"] = "uvx"
    place.env["WHOLETURN_MCP_SERVERS__A__ARGS"] = '["x"]'
    place.env["WHOLETURN_MCP__FIRST_TURN_WAIT"] = "0"
    found = place.session().mcp
    assert found is not None
    assert (found.servers[0].command, found.servers[0].args, found.first_turn_wait) == ("uvx", ("x",), 0)


def test_servers_as_a_client_names_them():
    named = SERVERS.validate_python(
        [
            {"name": "a", "command": "/bin/x", "args": ["1"], "env": [{"name": "K", "value": "v"}]},
            {"type": "http", "name": "b", "url": "http://h", "headers": [{"name": "H", "value": "w"}]},
            {"type": "sse", "name": "c", "url": "http://s", "headers": []},
        ]
    )
    assert [of_client(server) for server in named] == [
        ServerSettings("a", command="/bin/x", args=("1",), env={"K": "v"}),
        ServerSettings("b", "http", url="http://h", headers={"H": "w"}),
        ServerSettings("c", "sse", url="http://s"),
    ]
