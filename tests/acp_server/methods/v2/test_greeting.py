"""Which version a connection speaks: by what its client asks for and what the settings allow."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from acp_server.app.app import App
from acp_server.config.settings import Options, SessionConfig
from acp_server.methods.v2.client import SecondEdition
from acp_server.methods.v2.table import METHODS as DRAFT
from acp_server.methods.versions import METHODS, initialize
from acp_server.wire.dispatch import Answer, start
from runtime.ports import Client
from tests.support.acp_schema import check_result, definitions

METHODS_V2 = {"initialize": initialize, **DRAFT}
SECOND = {"protocolVersion": 2, "info": {"name": "tests", "version": "1"}, "capabilities": {}}


def app_with(tmp_path: Path, *assignments: str) -> App:
    env = {"WHOLETURN_CONFIG_DIR": str(tmp_path), "WHOLETURN_DATA_DIR": str(tmp_path)}
    return App(Options(assignments=assignments), env, _no_client)


def _no_client(params: Mapping[str, object], config: SessionConfig) -> Client:
    raise AssertionError("no session is opened here")


def greeted(app: App, params: Mapping[str, object], *, second: bool = False) -> Answer:
    answer = start(METHODS_V2 if second else METHODS, app, "initialize", dict(params))
    assert isinstance(answer, Answer), answer
    return answer


def version(answer: Answer) -> object:
    assert isinstance(answer.result, dict)
    return answer.result["protocolVersion"]


def test_the_second_version_is_off_unless_it_is_switched_on(tmp_path: Path):
    app = app_with(tmp_path)
    answer = greeted(app, SECOND)
    assert (version(answer), answer.methods, app.edition) == (1, None, None)


@pytest.mark.parametrize("broken", ["acp.v2=maybe", "acp.v3=true"])
def test_settings_that_cannot_be_read_switch_nothing_on(tmp_path: Path, broken: str):
    assert version(greeted(app_with(tmp_path, "acp.v2=true", broken), SECOND)) == 1


def test_a_connection_changes_its_version_with_each_greeting(tmp_path: Path):
    app = app_with(tmp_path, "acp.v2=true")
    second = greeted(app, SECOND)
    check_result("initialize", second.result, "schema-v2")
    assert (version(second), second.methods) == (2, METHODS_V2)
    assert isinstance(app.edition, SecondEdition)
    first = greeted(app, {"protocolVersion": 1}, second=True)
    assert (version(first), first.methods) == (1, METHODS)
    assert app.edition is None
    assert greeted(app, {"protocolVersion": 1}).methods is None


def test_all_that_v2_asks_of_every_agent_is_answered():
    methods = {
        body["x-method"] for body in definitions("schema-v2").values() if body.get("x-side") == "agent"
    }
    unanswered = methods - METHODS_V2.keys()
    assert unanswered == {"tool_call/cancel", "terminal/cancel"}  # for calls and terminals that offer it
