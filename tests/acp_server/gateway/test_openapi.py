"""The OpenAPI description is valid, names every route, and a machine that tries it finds nothing."""

import re
import sys
from pathlib import Path

import jsonschema
import pytest
import trio

from acp_server.config.settings import GatewaySettings, Options
from acp_server.gateway.api.openapi import description
from acp_server.gateway.api.routes import ROUTES
from acp_server.gateway.serve import build, make_state
from runtime.values.profiles import Profile
from tests.acp_server.gateway.looked import desk, talked
from tests.acp_server.gateway.serving import serving

TOKEN = "a-token-that-is-long-enough-to-be-one-0123"
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
EXAMPLES = 8
SETTINGS = """\
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 431]
"""
"""An address that is too long is refused by the server itself."""


def test_every_route_is_described_with_all_its_ends() -> None:
    found = description(ROUTES)
    assert set(found["paths"]) == {route.path for route in ROUTES} | {"/api/events", "/api/openapi.json"}
    for path in found["paths"].values():
        assert {"200", "400", "401", "403", "429"} <= set(path["get"]["responses"])
    assert found["security"] == [{"bearer": []}]
    limit = next(
        one for one in found["paths"]["/api/sessions"]["get"]["parameters"] if one["name"] == "limit"
    )
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}


def test_its_schemas_are_schemas_and_every_reference_leads_somewhere() -> None:
    found = description(ROUTES)
    for schema in found["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for ref in re.findall(r"'\$ref': '#/components/(\w+)/(\w+)'", str(found)):
        assert ref[1] in found["components"][ref[0]], ref


@pytest.mark.parametrize("path", ["", "/context", "/transcript", "/trims", "/timeline"])
async def test_answers_are_as_described(path: str) -> None:
    session, store = await talked(8, Profile(max_history_messages=3))
    async with desk(store, session) as client:
        found = await client.get("/api/openapi.json")
        answer = await client.get(f"/api/sessions/s{path}")
    operation = found["paths"]["/api/sessions/{session_id}" + path]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**schema, "components": found["components"]}).validate(answer)


async def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """Against the whole gateway, guard included. The event stream has no end, so it is left out."""
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    settings = GatewaySettings(requests_per_second=100_000)
    env = {"WHOLETURN_CONFIG_DIR": str(tmp_path), "WHOLETURN_DATA_DIR": str(tmp_path)}
    async with trio.open_nursery() as nursery:
        state = make_state(Options(store="memory"), env, settings, TOKEN, nursery)
        await talked(8, Profile(max_history_messages=3), store=state.app.store())
        async with serving(build(state)) as port:
            with trio.fail_after(120):
                done = await trio.run_process(
                    arguments(f"http://127.0.0.1:{port}"),
                    capture_stdout=True,
                    capture_stderr=True,
                    check=False,
                    cwd=tmp_path,
                )
        nursery.cancel_scope.cancel()
    text = "\n".join(line[:300] for line in (done.stdout + done.stderr).decode().splitlines())
    assert done.returncode == 0, text
    assert "No issues found" in text, text


def arguments(base: str) -> list[str]:
    """The command line: all checks, each kind of case, bounded."""
    return [
        str(SCHEMATHESIS),
        "run",
        f"{base}/api/openapi.json",
        f"--header=Authorization: Bearer {TOKEN}",
        "--exclude-path=/api/events",
        "--checks=all",
        f"--max-examples={EXAMPLES}",
        "--seed=7",
        "--generation-database=none",
        "--no-color",
    ]
