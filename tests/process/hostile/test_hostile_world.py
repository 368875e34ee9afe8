"""A machine that breaks the rules: folders that go, homes that are not there, outputs that take no more."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from runtime.store.sqlite import schema
from runtime.store.sqlite.connection import open_for_writing
from tests.process.homes import Home, says
from tests.support.wire_order import Json
from tests.support.wire_talk import greet, text_block, text_of

MODULE = [sys.executable, "-m", "acp_server"]
FULL = Path("/dev/full")


def run(home: Home, *arguments: str | bytes, **options: object) -> "subprocess.CompletedProcess[bytes]":
    """A command to its end, which must be no traceback."""
    given = {"cwd": home.work, "env": home.env, "stdout": subprocess.PIPE, "timeout": 60} | options
    done = subprocess.run([*MODULE, *arguments], stderr=subprocess.PIPE, **given)  # type: ignore[call-overload]
    assert b"Traceback" not in done.stderr, done.stderr
    assert b"Exception ignored" not in done.stderr, done.stderr
    assert isinstance(done, subprocess.CompletedProcess)
    return done


def from_a_lost_folder(home: Home, *arguments: str) -> list[str]:
    """A command that removes the folder it stands in, and then becomes wholeturn."""
    lost = home.root / "lost"
    lost.mkdir()
    code = f"import os, sys; os.rmdir({str(lost)!r}); os.execv(sys.executable, {[*MODULE, *arguments]!r})"
    return [sys.executable, "-c", f"import os; os.chdir({str(lost)!r}); {code}"]


async def test_a_server_whose_own_folder_was_removed(home: Home) -> None:
    async with home.start(command=from_a_lost_folder(home)) as agent:
        await greet(agent)
        made = await agent.call("session/new", {"cwd": str(home.work), "mcpServers": []})
        listed = await agent.call("session/list", {})
        assert [session["sessionId"] for session in listed["sessions"]] == [made["sessionId"]]


def test_run_in_a_folder_that_was_removed(home: Home) -> None:
    done = subprocess.run(
        from_a_lost_folder(home, "run", "hi"), env=home.env, capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, b"1: you said hi\n"), done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the home is found another way")
def test_without_a_home_nothing_is_looked_for_in_the_folder_at_hand(home: Home) -> None:
    env = {"PATH": home.env["PATH"], "HOME": "here"}
    done = run(home, "run", "hi", env=env)
    assert done.returncode == 1
    assert b"home folder is not known" in done.stderr
    assert list(home.work.iterdir()) == []


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is full")
@pytest.mark.parametrize("command", [["run", "hi"], ["run", "--output", "json", "hi"], ["config", "show"]])
def test_an_output_without_room_is_said_in_one_line(home: Home, command: list[str]) -> None:
    with FULL.open("wb") as full:
        done = run(home, *command, stdout=full)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"cannot be written" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are bytes only elsewhere")
def test_an_argument_that_is_no_text_still_asks(home: Home) -> None:
    done = run(home, b"run", b"a\xff\xfeb")
    assert (done.returncode, done.stdout.decode()) == (0, "1: you said a\ufffd\ufffdb\n"), done.stderr


def test_bytes_on_stdin_that_are_no_text_still_ask(home: Home) -> None:
    done = run(home, "run", "-", input=b"a\xff")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"1: you said a")


def test_a_terminal_that_knows_ascii_alone(home: Home) -> None:
    home.script(says("caf\u00e9 \u2192 ok"))
    done = run(home, "run", "hi", env=home.env | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stdout) == (0, b"caf? ? ok\n"), done.stderr


async def test_meta_that_nests_without_end_is_left_out_and_the_prompt_asked(home: Home) -> None:
    meta: Json = {}
    for _ in range(400):
        meta = {"in": meta}
    async with home.talk() as talk:
        block = text_block("hi") | {"_meta": meta}
        params = {"sessionId": talk.session_id, "prompt": [block]}
        assert (await talk.agent.call("session/prompt", params))["stopReason"] == "end_turn"
    async with home.resumed(talk) as replay:
        assert text_of(replay, "user_message_chunk") == "hi"


async def test_a_session_that_is_closed_at_once_leaves_nothing_in_the_log(home: Home) -> None:
    async with home.start() as agent:
        await greet(agent)
        for _ in range(20):
            made = await agent.call("session/new", {"cwd": str(home.work), "mcpServers": []})
            await agent.call("session/close", {"sessionId": made["sessionId"]})
        await agent.close()
        assert agent.stderr() == ""


def test_processes_that_start_together_on_a_new_store_are_no_strangers(home: Home) -> None:
    """Each sees the file as it was before or after the other made its tables, never in between."""
    for number in range(4):
        env = home.env | {"WHOLETURN_DATA_DIR": str(home.root / f"data{number}")}
        lines = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "session/new",
                "params": {"cwd": str(home.work), "mcpServers": []},
            },
        ]
        said = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        started = [
            subprocess.Popen(MODULE, stdin=-1, stdout=-1, stderr=-1, env=env, cwd=home.spawn)
            for _ in range(4)
        ]
        for process in started:
            assert process.stdin is not None
            process.stdin.write(said)
            process.stdin.flush()
        for process in started:
            out, log = process.communicate(timeout=60)
            assert (b"sess_" in out, log) == (True, b"")


def test_tables_that_another_process_makes_during_the_look_are_no_stranger_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sessions.db"
    real = schema.read_version

    def with_company(connection: sqlite3.Connection) -> int:
        monkeypatch.setattr(schema, "read_version", real)
        other = sqlite3.connect(path, timeout=0, isolation_level=None)
        with closing(other), suppress(sqlite3.OperationalError):
            schema.migrate(other)
        return real(connection)

    monkeypatch.setattr(schema, "read_version", with_company)
    with closing(open_for_writing(path, timeout=1)) as connection:
        assert real(connection) == schema.SCHEMA_VERSION


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ALL_PROXY", "socks4://127.0.0.1:1", "names a proxy of a kind that is not known"),
        ("HTTPS_PROXY", "::::", "names a proxy that cannot be read"),
        ("SSL_CERT_FILE", "/missing", "which cannot be used (No such file or directory)"),
    ],
)
async def test_an_environment_in_which_nothing_can_be_asked(
    home: Home, name: str, value: str, said: str
) -> None:
    home.model_at("https://model.test/v1")
    home.extra_env |= {name: value}
    async with home.talk() as talk:
        turn = await talk.turn("hi")
        assert turn.error is not None
        assert f"The environment variable {name} names" in turn.error.message
        assert said in turn.error.message
        assert turn.error.message in text_of(turn.updates)
