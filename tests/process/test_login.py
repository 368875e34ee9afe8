"""Logging in: what is offered, what `authenticate` really does, and `wholeturn setup` run by a script."""

import json
import os
import subprocess
import sys

import pytest
import trio

from tests.process.homes import Home
from tests.process.models import answers
from tests.support.fakes_llm import HELLO, Canned, FakeServer, fake_server
from tests.support.wire_order import Json
from tests.support.wire_talk import greet, refused

KEY = "sk-hunter2"
WRONG = Canned(
    (
        json.dumps(
            {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
        ).encode(),
    ),
    status=401,
    content_type="application/json",
)


async def setup(home: Home, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    """`wholeturn setup`, with stdin for its key; no key may come out of it."""
    command = [sys.executable, "-m", "acp_server", "setup", *arguments]
    with trio.fail_after(60):
        done = await trio.run_process(
            command,
            cwd=home.spawn,
            env=home.env,
            stdin=stdin.encode(),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    assert KEY.encode() not in done.stdout + done.stderr
    return done


def flags(server: FakeServer, *more: str) -> list[str]:
    return ["--provider", "custom", "--base-url", server.base_url, "--model", "m", *more]


def config(home: Home) -> str:
    return (home.root / "config" / "config.toml").read_text()


def bearer(server: FakeServer, number: int = -1) -> str | None:
    return server.asked[number].headers.get("authorization")


async def login(home: Home, code: int | None = None) -> str:
    """`authenticate` by the agent's own method; its error's message."""
    async with home.start() as agent:
        await greet(agent)
        if code is None:
            assert await agent.call("authenticate", {"methodId": "config"}) == {}
            return ""
        return str(await refused(agent, "authenticate", {"methodId": "config"}, code))


# ---------------------------------------------------------------- what is offered

OFFERS: list[tuple[Json, list[str]]] = [
    ({}, ["config"]),
    ({"auth": {"terminal": False}}, ["config"]),
    ({"auth": {"terminal": True}}, ["config", "setup"]),
]


@pytest.mark.parametrize(("capabilities", "ids"), OFFERS)
async def test_a_terminal_is_offered_to_clients_that_have_one(
    home: Home, capabilities: Json, ids: list[str]
) -> None:
    async with home.start() as agent:
        methods = (await greet(agent, capabilities))["authMethods"]
        assert [method["id"] for method in methods] == ids
        assert "type" not in methods[0]
        assert [(method["type"], method["args"]) for method in methods[1:]] == [("terminal", ["setup"])] * (
            len(ids) - 1
        )
        for other in ("setup", "magic", ""):
            await refused(agent, "authenticate", {"methodId": other}, -32602)


# ---------------------------------------------------------------- authenticate


async def test_a_good_key_is_one_that_the_model_takes(home: Home) -> None:
    async with fake_server(HELLO) as server:
        home.model_at(server.base_url, api_key_env="MY_KEY")
        home.extra_env["MY_KEY"] = KEY
        await login(home)
        assert bearer(server) == f"Bearer {KEY}"


async def test_a_key_that_is_refused_is_no_login(home: Home) -> None:
    async with fake_server(WRONG) as server:
        home.model_at(server.base_url, api_key_env="MY_KEY")
        home.extra_env["MY_KEY"] = KEY
        assert KEY not in await login(home, -32000)
        assert len(server.asked) == 1


async def test_a_missing_key_is_told_with_both_ways_to_give_one(home: Home) -> None:
    home.model_at("http://127.0.0.1:9/v1", api_key_env="MY_KEY")
    message = await login(home, -32000)
    assert "MY_KEY" in message
    assert "wholeturn setup" in message


async def test_no_model_is_no_login(home: Home) -> None:
    (home.root / "config" / "config.toml").write_text("")
    assert "wholeturn setup" in await login(home, -32000)


async def test_a_server_that_is_down_is_not_a_question_of_login(home: Home) -> None:
    home.model_at("http://127.0.0.1:9/v1", api_key_env="MY_KEY")
    home.extra_env["MY_KEY"] = KEY
    await login(home, -32603)


async def test_a_model_without_a_key_is_asked_nothing(home: Home) -> None:
    home.script({"text": "the only answer"})
    await login(home)
    async with home.talk() as talk:
        assert (await talk.turn("hi")).text == "the only answer"


# ---------------------------------------------------------------- setup


async def test_a_key_from_stdin_is_stored_tried_and_used_from_then_on(home: Home) -> None:
    (home.root / "config" / "config.toml").write_text("")
    async with fake_server(answers("OK"), answers("hello")) as server:
        done = await setup(home, *flags(server, "--key-stdin"), stdin=f"{KEY}\n")
        assert done.returncode == 0, done.stderr
        assert KEY not in config(home)
        stored = home.root / "config" / "keys.json"
        assert stored.stat().st_mode & 0o777 == 0o600
        assert "CUSTOM_API_KEY" not in home.env
        async with home.talk() as talk:
            assert (await talk.turn("hi")).text == "hello"
        assert [bearer(server, number) for number in (0, 1)] == [f"Bearer {KEY}"] * 2
        await login(home)
    assert KEY not in home.log.read_text()


async def test_a_key_that_is_refused_changes_nothing(home: Home) -> None:
    before = config(home)
    async with fake_server(WRONG) as server:
        done = await setup(home, *flags(server, "--key-stdin"), stdin=f"{KEY}\n")
    assert done.returncode == 1
    assert config(home) == before
    assert not (home.root / "config" / "keys.json").exists()


async def test_a_key_in_a_variable_stays_there(home: Home) -> None:
    home.extra_env["OTHER_KEY"] = KEY
    async with fake_server(answers("OK")) as server:
        done = await setup(home, *flags(server, "--key-env", "OTHER_KEY"))
        assert done.returncode == 0, done.stderr
        assert bearer(server) == f"Bearer {KEY}"
    assert 'api_key_env = "OTHER_KEY"' in config(home)
    assert not (home.root / "config" / "keys.json").exists()


async def test_no_key_and_no_question_asked(home: Home) -> None:
    done = await setup(home, "--provider", "custom", "--base-url", "http://h/v1", "--model", "m", "--no-try")
    assert done.returncode == 0, done.stderr
    assert "trim_slack_ratio = 0.2" in config(home)


MISSING = [
    ([], "Nobody can be asked here"),
    (["--provider", "opnai"], 'did you mean "openai"?'),
    (["--provider", "custom"], "--base-url is needed"),
    (["--provider", "custom", "--base-url", "http://h/v1"], "--model is needed"),
    (["--provider", "openai"], "There is no key: OPENAI_API_KEY is not set"),
    (["--provider", "openai", "--key-stdin"], "is no key"),
]


@pytest.mark.parametrize(("arguments", "says"), MISSING)
async def test_what_is_missing_is_said_and_nothing_is_changed(
    home: Home, arguments: list[str], says: str
) -> None:
    before = config(home)
    done = await setup(home, *arguments)
    assert done.returncode == 1
    assert says in done.stderr.decode()
    assert config(home) == before


async def test_a_broken_file_is_mended_first(home: Home) -> None:
    path = home.root / "config" / "config.toml"
    path.write_text("[agents\n")
    done = await setup(home, "--provider", "custom", "--base-url", "http://h/v1", "--model", "m", "--no-try")
    assert done.returncode == 1
    assert "config.toml:1" in done.stderr.decode()
    assert path.read_text() == "[agents\n"


async def test_the_clients_terminal_runs_the_same_command_with_setup_behind_it(home: Home) -> None:
    """At a terminal it asks; the end of input ends it, by an exit status that is not success."""
    primary, secondary = os.openpty()
    try:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "acp_server", "setup"],
            cwd=home.spawn,
            env=home.env,
            stdin=secondary,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.write(primary, b"custom\nhttp://h/v1\n\x04\x04")
        with trio.fail_after(60):
            assert process.stdout is not None
            shown = b"".join([piece async for piece in process.stdout])
            assert await process.wait() == 1
    finally:
        os.close(primary)
        os.close(secondary)
    assert b"Which provider answers?" in shown
    assert b"A name for it" in shown
