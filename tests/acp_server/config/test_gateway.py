"""The gateway's settings: defaults, paths, and that a project's file cannot open a door."""

import pytest

from acp_server.config.effective import settings_in_force
from acp_server.config.settings import GatewaySettings
from runtime.values.errors import ConfigError
from tests.acp_server.config.conftest import USER

WHOLE = """\
[gateway]
host = "::1"
port = 1
tls_cert = "cert.pem"
tls_key = "/keys/key.pem"
allowed_hosts = ["gate.example.org"]
allowed_origins = ["https://gate.example.org"]
max_connections = 2
max_message_bytes = 2048
requests_per_second = 3
detached_turn_seconds = 0
"""


def test_nothing_said(place):
    assert place.session().gateway == GatewaySettings()


def test_everything_said(place):
    path = place.user(f"{USER}{WHOLE}")
    assert place.session().gateway == GatewaySettings(
        "::1",
        1,
        str(path.parent / "cert.pem"),
        "/keys/key.pem",
        ("gate.example.org",),
        ("https://gate.example.org",),
        2,
        2048,
        3,
        0,
    )


def test_a_project_that_is_not_trusted_has_no_say(place):
    place.user(USER)
    place.project_file(WHOLE)
    config = place.session()
    assert config.gateway == GatewaySettings()
    assert "gateway.host is left out" in "\n".join(config.warnings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 70000", "gateway.port must be at most 65535"),
        ("max_message_bytes = 1", "gateway.max_message_bytes must be at least 1024"),
        ('allowed_origins = ["example.org"]', "must hold origins such as https://example.org"),
        *[
            (f'allowed_hosts = ["{name}"]', "must hold names such as agent.example.org, without a port")
            for name in ("*", "a.org:80", "https://a.org", "a.org.", "[::1]", "\u00e4.org")
        ],
        ("max_conections = 1", 'did you mean "max_connections"'),
    ],
)
def test_what_cannot_be(place, text, said):
    path = place.user(f"[gateway]\n{text}")
    with pytest.raises(ConfigError) as caught:
        place.session()
    assert f"{path}:2: " in str(caught.value)
    assert said in str(caught.value)


def test_it_is_shown(place):
    place.user(f"{USER}{WHOLE}")
    shown = {setting.key: setting.value for setting in settings_in_force(place.view(), place.env)}
    assert shown["gateway", "port"] == 1
    assert shown["gateway", "allowed_hosts"] == ["gate.example.org"]
