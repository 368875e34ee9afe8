"""The support of the scripts: the mock model, the driver, the bench's judgement, and the set-up's stamp."""

import importlib
import json
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_drive import Agent, AgentError, Turn
from bench_chunks import lateness_ms
from bench_rig import Exchange, Rig, Talk
from bench_run import SECTIONS, wanted
from bench_table import Row, figure, median, quantile, render
from bench_tools import call_ms
from mock_reply import arguments_for, pairs, turn_of
from mock_text import prompt_text, reply_text

CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}
USER = {"role": "user", "content": "TURN-00007 go on"}


def post(url: str, body: dict[str, object]) -> bytes:
    """The answer to a chat completions request. Straight to the loopback address, past any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url + "/v1/chat/completions", json.dumps(body).encode(), timeout=10) as answer:
        data: bytes = answer.read()
        return data


@pytest.mark.parametrize(
    ("messages", "verdict"),
    [
        ([USER, ASKED, RESULT], "ok"),
        ([USER, ASKED], "call without result: c1"),
        ([USER, ASKED, USER, RESULT], "call without result: c1"),
        ([USER, RESULT], "result without call: c1"),
        ([USER, ASKED, RESULT, RESULT], "result without call: c1"),
    ],
)
def test_the_mock_knows_broken_pairs(messages: list[dict[str, object]], verdict: str):
    assert pairs(messages) == verdict


def test_the_mock_refuses_broken_pairs_and_overlong_requests(mock_model: Callable[..., str]):
    url = mock_model(limit_tokens=200)
    with pytest.raises(urllib.error.HTTPError, match="400") as broken:
        post(url, {"messages": [USER, RESULT]})
    assert b"result without call" in broken.value.read()
    broken.value.close()
    with pytest.raises(urllib.error.HTTPError, match="400") as overlong:
        post(url, {"messages": [{"role": "user", "content": "x" * 4000}]})
    assert b"context_length_exceeded" in overlong.value.read()
    overlong.value.close()


def test_the_mock_answers_by_the_turn_in_the_prompt(mock_model: Callable[..., str]):
    url = mock_model(reply_chars=300, chunks=7)
    assert turn_of([USER, {"role": "user", "content": "no number"}]) == 7
    whole = json.loads(post(url, {"messages": [USER]}))["choices"][0]["message"]["content"]
    assert whole == reply_text(7, 300)
    lines = post(url, {"messages": [USER], "stream": True}).decode().splitlines()
    frames = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    pieces = [choice["delta"].get("content") for frame in frames for choice in frame["choices"]]
    assert [piece for piece in pieces if piece] == [whole[i : i + 43] for i in range(0, 300, 43)]


def test_arguments_fit_the_schema():
    parameters = {"properties": {"path": {}, "limit": {}}, "required": ["path"]}
    assert arguments_for({"function": {"parameters": parameters}}, "a.txt") == {"path": "a.txt"}


def test_ratios_are_judged():
    assert [Row("x", value, 10, bound=3).verdict for value in (30, 30.1)] == ["ok", "OVER"]
    assert Row("x", 5).verdict == ""
    assert (median([3, 1, 2]), quantile([*range(100)], 0.99)) == (2, 99)
    assert [figure(value, "ms") for value in (1234.5, 45.67, 1.234, None)] == [
        "1234 ms",
        "45.7 ms",
        "1.23 ms",
        "",
    ]
    table = render([Row("a turn", 31, 10, "bare loop", bound=3), Row("more", 1, unit="MB")])
    assert table.splitlines()[1].split() == [
        "a",
        "turn",
        "31.0",
        "ms",
        "10.0",
        "ms",
        "bare",
        "loop",
        "3.10",
        "3",
        "OVER",
    ]


def test_sections_are_chosen():
    assert wanted([]) == list(SECTIONS)
    assert list(SECTIONS)[:2] == ["start", "turns"]
    assert wanted(["tools", "memory"]) == ["turns", "tools"]


def test_the_bench_sees_every_call_and_every_piece(tmp_path: Path):
    with Rig(tmp_path, "bare", quick=True) as rig, rig.bare() as agent:
        rig.mock.configure(reply_chars=100, chunks=10, tool_loop=2, log_pieces=True, chunk_delay=0.001)
        talk = Talk(agent, 100)
        turn = talk.turn()
        exchanges = rig.mock.exchanges(turn)
        assert turn.text == reply_text(1, 100)
        assert [exchange.is_call for exchange in exchanges] == [True, True, False]
        assert len(call_ms(rig.mock, turn)) == 2
        assert len(lateness_ms(turn, exchanges[-1])) == 10
        assert 0 < rig.mock.own_ms([turn])[0] < 1e3 * turn.wall
        assert agent.noise == []


def test_a_late_piece_is_late():
    chunks = [(2.5, "ab"), (2.6, "cd")]
    updates = [
        (at, {"sessionUpdate": "agent_message_chunk", "content": {"text": text}}) for at, text in chunks
    ]
    late = lateness_ms(Turn(0, updates=updates), Exchange(0, 3, False, [(1, 2.4), (2, 2.45), (1, 2.5)]))
    assert late == pytest.approx([100, 150, 100])


def test_the_driver_tells_noise_and_a_dead_agent(tmp_path: Path):
    program = "print('warming up'); print('{\"id\": 1, \"result\": {}}', flush=True); input()"
    with Agent([sys.executable, "-c", program], tmp_path) as agent:
        agent.initialize()
        assert agent.noise == [b"warming up"]
        # It may be gone before the request is written, or after.
        with pytest.raises(AgentError, match=r"closed its output|agent gone"):
            agent.new()


@pytest.fixture
def environment(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch):
    """The set-up's module, looking at a folder of its own."""
    module = importlib.import_module("_setup")
    shutil.copytree(repository / module.LOCKS_FOLDER, tmp_path / module.LOCKS_FOLDER)
    (tmp_path / "pyproject.toml").write_bytes((repository / "pyproject.toml").read_bytes())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for name, value in {"PYTHON": "bin/python", "STAMP": "stamp", "HALF_MADE": "half-made"}.items():
        monkeypatch.setattr(module, name, tmp_path / value)
    return module


def test_the_stamp_vouches_until_something_changes(environment, tmp_path: Path):
    assert not environment.is_ready("runtime")
    environment.STAMP.write_text(f"runtime {environment.digest()}\n")
    assert environment.is_ready("runtime")
    assert not environment.is_ready("dev")
    environment.STAMP.write_text(f"local {environment.digest()}\n")
    assert [environment.is_ready(kind) for kind in ("runtime", "local", "dev")] == [True, True, False]
    environment.STAMP.write_text(f"dev {environment.digest()}\n")
    assert [environment.is_ready(kind) for kind in ("runtime", "local", "dev")] == [True, True, True]
    (tmp_path / "half-made").touch()
    assert not environment.is_ready("dev")
    (tmp_path / "half-made").unlink()
    with open(tmp_path / environment.LOCKS_FOLDER / "requirements.lock", "a") as lock:
        lock.write("# changed\n")
    assert not environment.is_ready("dev")


def test_the_stamp_does_not_vouch_for_a_python_that_is_gone(environment, tmp_path: Path):
    environment.STAMP.write_text(f"dev {environment.digest()}\n")
    (tmp_path / "bin" / "python").unlink()
    (tmp_path / "bin" / "python").symlink_to(tmp_path / "nowhere")
    assert not environment.is_ready("dev")
    assert not environment.usable()


def test_prompts_carry_their_number():
    assert prompt_text(12, 50).startswith("TURN-00012 ")
    assert len(prompt_text(12, 50)) == 50
