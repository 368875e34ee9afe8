"""The entry for the ACP registry passes the registry's rules, and the rules find what they forbid."""

import json
from pathlib import Path
from typing import Any

import pytest

from acp_server.acp.capabilities import initialize_result
from schemas.version import __version__
from tests.editors.registry_rules import auth_faults, entry_faults, icon_faults

FOLDER = Path(__file__).resolve().parents[2] / "acp_server/programs/editors/registry/wholeturn"
ENTRY: dict[str, Any] = json.loads((FOLDER / "agent.json").read_text())
ICON = (FOLDER / "icon.svg").read_text()


def test_the_entry_is_as_the_registry_wants_it():
    assert entry_faults(ENTRY, FOLDER.name) == []
    assert {path.name for path in FOLDER.iterdir()} == {"agent.json", "icon.svg"}


def test_the_entry_is_of_this_version_and_licence():
    assert ENTRY["version"] == __version__
    assert ENTRY["distribution"] == {"uvx": {"package": f"wholeturn=={__version__}"}}
    assert ENTRY["license"] == "Apache-2.0"


def test_the_icon_is_as_the_registry_wants_it():
    assert icon_faults(ICON) == []


@pytest.mark.parametrize("capabilities", [{}, {"auth": {"terminal": True}}])
def test_the_agent_offers_a_way_to_log_in(capabilities: dict[str, Any]):
    result = initialize_result({"protocolVersion": 1, "clientCapabilities": capabilities})
    assert auth_faults(result) == []


UVX = {"package": "wholeturn==0.1.0"}
BINARY = {"archive": "https://h.example/download/v0.1.0/a.tar.gz", "cmd": "./a"}
GOOD = {"id": "a", "name": "A", "version": "0.1.0", "description": "d", "distribution": {"uvx": UVX}}
SPOILT: list[tuple[dict[str, Any], str]] = [
    ({"id": "A"}, "small letters"),
    ({"id": "b"}, "folder"),
    ({"version": "1.0"}, "x.y.z"),
    ({"name": ""}, "no text"),
    ({"homepage": "x"}, "not known"),
    ({"distribution": {}}, "no distribution"),
    ({"distribution": {"pip": UVX}}, "no way"),
    ({"distribution": {"uvx": {"package": "wholeturn==0.2.0"}}}, "0.2.0"),
    ({"distribution": {"npx": {"package": "@a/b@0.2.0"}}}, "0.2.0"),
    ({"distribution": {"uvx": {"package": "wholeturn@latest"}}}, "latest"),
    ({"distribution": {"uvx": {**UVX, "command": "x"}}}, "not known"),
    ({"distribution": {"uvx": {"cmd": "x"}}}, "missing"),
    ({"distribution": {"binary": {"linux-arm": BINARY}}}, "platform"),
    (
        {"distribution": {"binary": {"linux-x86_64": {"archive": "https://h.example/a.deb", "cmd": "a"}}}},
        "installer",
    ),
    (
        {"distribution": {"binary": {"linux-x86_64": {**BINARY, "archive": "https://h/latest/a.zip"}}}},
        "latest",
    ),
]


def test_good_entries_pass():
    assert entry_faults(GOOD, "a") == []
    scoped = {"npx": {"package": "@a/b@0.1.0", "cmd": "b"}, "binary": {"linux-x86_64": BINARY}}
    assert entry_faults({**GOOD, "distribution": scoped}, "a") == []


@pytest.mark.parametrize(("change", "told"), SPOILT)
def test_a_spoilt_entry_is_refused(change: dict[str, Any], told: str):
    assert any(told in fault for fault in entry_faults({**GOOD, **change}, "a"))


@pytest.mark.parametrize("key", ["id", "name", "version", "description", "distribution"])
def test_an_entry_without_a_key_is_refused(key: str):
    assert entry_faults({name: value for name, value in GOOD.items() if name != key}, "a") == [
        f"{key} is missing"
    ]


SPOILT_ICONS = [
    ('width="16"', 'width="32"', "size"),
    ('width="16" height="16" viewBox="0 0 16 16"', "", "size"),
    ("currentColor", "#123456", "fixed"),
    ("currentColor", "none", "theme"),
    ("<circle", '<style>circle { fill: red }</style><circle style="stroke: blue"', "red"),
    ("<circle", "<!-- dot --><circle", "comments"),
    ("</svg>", "", "no XML"),
    ("svg", "html", "no SVG"),
]


@pytest.mark.parametrize(("right", "wrong", "told"), SPOILT_ICONS)
def test_a_spoilt_icon_is_refused(right: str, wrong: str, told: str):
    assert right in ICON
    assert any(told in fault for fault in icon_faults(ICON.replace(right, wrong)))


def test_an_agent_without_a_way_to_log_in_is_refused():
    assert auth_faults({}) != []
    assert auth_faults({"authMethods": [{"id": "k", "type": "env_var"}]}) != []
    assert auth_faults({"authMethods": [{"id": "k"}]}) == []
