"""Our ACP models against the official schema: what it allows parses, what it requires is required."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from schemas.acp.content import ContentBlock
from schemas.acp.fields import is_absolute
from schemas.acp.initialize import AuthenticateParams, ClientCapabilities, InitializeParams, InitializeResult
from schemas.acp.mcp import SERVERS, HttpServer, SseServer, StdioServer
from schemas.acp.prompt_and_options import CancelParams, PromptParams
from schemas.acp.session import CloseSessionParams, ListSessionsParams, LoadSessionParams, NewSessionParams
from tests.support.acp_samples import values_of
from tests.support.acp_schema import NonConformant, check_type, definitions

MODELS: list[tuple[type[BaseModel], str]] = [
    (InitializeParams, "InitializeRequest"),
    (InitializeResult, "InitializeResponse"),
    (AuthenticateParams, "AuthenticateRequest"),
    (NewSessionParams, "NewSessionRequest"),
    (LoadSessionParams, "LoadSessionRequest"),
    (ListSessionsParams, "ListSessionsRequest"),
    (CloseSessionParams, "CloseSessionRequest"),
    (PromptParams, "PromptRequest"),
    (CancelParams, "CancelNotification"),
]
BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


@pytest.mark.parametrize(("model", "name"), MODELS)
@settings(max_examples=30)
@given(data=st.data())
def test_what_the_schema_allows_parses_and_dumps_to_what_it_allows(model, name, data):
    sample = data.draw(values_of(name))
    check_type(name, sample)
    parsed = model.model_validate(sample)
    dumped = parsed.model_dump(mode="json", by_alias=True, exclude_none=True)
    check_type(name, dumped)
    assert model.model_validate(dumped) == parsed


@pytest.mark.parametrize(("model", "name"), MODELS)
@settings(max_examples=30)
@given(data=st.data())
def test_both_require_the_same_keys(model, name, data):
    sample = data.draw(values_of(name))
    assert isinstance(sample, dict)
    required = definitions()[name].get("required", [])
    assert isinstance(required, list)
    for key in sample:
        without = {other: value for other, value in sample.items() if other != key}
        if key in required:
            with pytest.raises(ValidationError):
                model.model_validate(without)
            with pytest.raises(NonConformant):
                check_type(name, without)
        else:
            model.model_validate(without)
            check_type(name, without)


@given(values_of("ContentBlock"))
def test_every_content_block_survives_a_round_trip(sample):
    parsed = BLOCK.validate_python(sample)
    dumped = BLOCK.dump_python(parsed, mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    check_type("ContentBlock", dumped)
    kept = {key: value for key, value in sample.items() if value is not None}
    assert dumped.keys() == kept.keys()
    for key in ("text", "data", "uri", "name"):
        assert dumped.get(key) == kept.get(key)


@given(st.lists(values_of("McpServer"), max_size=3))
def test_every_mcp_server_of_the_schema_parses(samples):
    kinds = {None: StdioServer, "http": HttpServer, "sse": SseServer}
    servers = NewSessionParams.model_validate({"cwd": "/", "mcpServers": samples}).mcp_servers
    assert [type(server) for server in servers] == [kinds[sample.get("type")] for sample in samples]


@pytest.mark.parametrize("kind", ["acp", "websocket", "", None, 1, ["http"], {}])
def test_an_unknown_server_type_is_not_taken_for_a_command(kind):
    server = {"type": kind, "name": "x", "command": "/bin/x", "args": [], "env": []}
    with pytest.raises(ValidationError):
        SERVERS.validate_python([server])


@pytest.mark.parametrize("key", ["args", "env"])
def test_a_null_list_of_a_server_is_empty_but_must_be_named(key):
    server = {"name": "x", "command": "/bin/x", "args": [], "env": []}
    (parsed,) = SERVERS.validate_python([{**server, key: None}])
    assert getattr(parsed, key) == ()
    with pytest.raises(ValidationError):
        SERVERS.validate_python([{name: value for name, value in server.items() if name != key}])


# ---------------------------------------------------------------- leniency


@pytest.mark.parametrize("bad", [None, 0, 1, "yes", [], True, {"readTextFile": "true"}, {"readTextFile": 1}])
@pytest.mark.parametrize("key", ["fs", "session", "_meta", "terminal", "auth", "unheardOf"])
def test_a_bad_capability_is_its_default_and_spoils_no_other(key, bad):
    good = {"fs": {"readTextFile": True}, "session": {"notices": {}, "compaction": {}}}
    parsed = ClientCapabilities.model_validate({**good, key: bad})
    assert parsed.fs.read_text_file is (key != "fs")
    gates = parsed.session and (parsed.session.notices, parsed.session.compaction)
    assert gates == (
        (True, True) if key != "session" else ((False, False) if isinstance(bad, dict) else None)
    )


@pytest.mark.parametrize(
    ("gate", "open_"),
    [({}, True), ({"later": 1}, True), (None, False), (True, False), (1, False), ("x", False), ([], False)],
)
def test_a_gate_is_open_by_the_presence_of_an_object(gate, open_):
    parsed = ClientCapabilities.model_validate({"session": {"notices": gate}})
    assert parsed.session is not None
    assert parsed.session.notices is open_
    assert parsed.session.compaction is False


@pytest.mark.parametrize("bad", [None, 3, [], "x"])
def test_initialize_fails_for_no_capabilities_and_no_info(bad):
    parsed = InitializeParams.model_validate(
        {"protocolVersion": 1, "clientCapabilities": bad, "clientInfo": bad}
    )
    assert parsed.client_capabilities == ClientCapabilities()
    assert parsed.client_info is None


@pytest.mark.parametrize("version", ["1", "2025-01-01", True, 1.0, 1.5, None, -1, 65536])
def test_the_version_is_a_uint16_and_nothing_else(version):
    with pytest.raises(ValidationError):
        InitializeParams.model_validate({"protocolVersion": version})


def test_bad_annotations_and_hints_are_left_out_of_a_block():
    block = {
        "type": "resource_link",
        "uri": "file:///x",
        "name": "x",
        "size": "big",
        "mimeType": 3,
        "annotations": {"audience": ["nobody"], "priority": "high", "lastModified": "now"},
    }
    parsed = BLOCK.validate_python(block)
    dumped = BLOCK.dump_python(parsed, mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    assert dumped == {
        "type": "resource_link",
        "uri": "file:///x",
        "name": "x",
        "annotations": {"lastModified": "now"},
    }


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize("path", ["/", "/a b", "C:\\", "c:/x", "\\\\server\\share", "\\\\wsl$\\Ubuntu\\home"])
def test_absolute_paths(path):
    assert is_absolute(path)
    assert NewSessionParams.model_validate({"cwd": path, "mcpServers": []}).cwd == path


@pytest.mark.parametrize(
    "path", ["", ".", "x/y", "~/x", "C:", "C:x", "\\x", "\\\\", "\\\\server", "file:///x", "/x\0y"]
)
def test_other_paths_are_refused(path):
    assert not is_absolute(path)
    for params in ({"cwd": path}, {"cwd": "/", "additionalDirectories": [path]}):
        with pytest.raises(ValidationError):
            NewSessionParams.model_validate({"mcpServers": [], **params})


# ---------------------------------------------------------------- cost

NEW_SESSION = """
import sys
from acp_server.acp.params import parse
from schemas.acp.session import NewSessionParams
parse(NewSessionParams, {"cwd": "/", "mcpServers": []})
print(sorted(name for name in sys.modules if name in ("schemas.acp.mcp", "schemas.acp.content")))
"""


def test_a_new_session_does_not_wait_for_models_that_it_does_not_use():
    done = subprocess.run([sys.executable, "-c", NEW_SESSION], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
