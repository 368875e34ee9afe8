"""A store on a database server, as the settings name it: who may, and what is shown and passed on of it."""

import pytest

from acp_server.config import project_trust
from acp_server.config.effective import settings_in_force

SECRET = "geheim9"
ADDRESS = f"postgresql://u:{SECRET}@h/db?sslpassword={SECRET}"


@pytest.fixture
def address(place):
    """The user's file names it."""
    place.user(f'store = "{ADDRESS}"\n')
    return ADDRESS


def test_it_is_no_path(place, address):
    assert place.session().store == address


def test_it_may_stand_in_the_environment_alone(place):
    place.env["WHOLETURN_STORE"] = ADDRESS
    assert place.session().store == ADDRESS


def test_what_is_shown_holds_no_password(place, address):
    shown = {".".join(setting.key): setting.value for setting in settings_in_force(place.view(), {})}
    assert shown["store"] == "postgresql://u:***@h/db?sslpassword=***"
    assert SECRET not in str(shown)


def test_no_program_that_is_started_gets_the_variables_of_the_password(place):
    assert "WHOLETURN_STORE" not in place.session().tools.key_variables
    place.env["WHOLETURN_STORE"] = ADDRESS
    assert {"WHOLETURN_STORE", "PGPASSWORD", "PGPASSFILE"} <= set(place.session().tools.key_variables)


def test_a_project_that_is_not_trusted_names_no_server(place, address):
    path = place.project_file('store = "postgresql://evil.example/db"')
    found = place.session()
    assert found.store == address
    assert found.warnings[0].startswith(f"{path}:1: store is left out: {project_trust.FORBIDDEN}")
