"""Retention inside a turn and across goals by the real server: told on the wire, replayed from the store."""

import json
from pathlib import Path

import pytest

from tests.process.homes import Home, call, calls, says
from tests.process.test_commands import wholeturn
from tests.support.wire_order import Json
from tests.support.wire_talk import kinds, of_kind

COMPACTION: Json = {"session": {"compaction": {}}}


def summarising(home: Home) -> Path:
    """A profile whose long turns another model summarises; that model's script."""
    small = home.root / "small.json"
    small.write_text(json.dumps({"replies": [{"text": "lines of a file, all alike", "repeat": 99}]}))
    home.configure(
        profile=(
            "max_tool_iterations = 40\n"
            '[runtime_profiles.mine.loop_context]\nstrategy = "summarize"\nmax_tokens = 1500\nkeep_last = 2\n'
            f'model = "small"\n[providers.small]\nkind = "scripted"\nscript = {json.dumps(str(small))}\n'
        )
    )
    return small


async def test_a_long_turn_is_folded_told_and_replayed_without_the_summariser(home: Home) -> None:
    small = summarising(home)
    (home.work / "a.txt").write_text("\n".join(f"line {number}" for number in range(60)))
    home.script({**calls(call("read_file", path="a.txt")), "repeat": 25}, says("done"))
    async with home.talk(COMPACTION) as talk:
        turn = await talk.turn("read it often")
    folds = of_kind(turn.updates, "compaction_update")
    assert kinds(turn.updates).count("history_trimmed") == len(folds) > 1
    for fold in folds:
        assert fold["summary"] == [{"type": "text", "text": "lines of a file, all alike"}]
    assert {one["reason"] for one in of_kind(turn.updates, "history_trimmed")} == {"loop context summarized"}
    small.unlink()
    done = wholeturn(home, "replay", talk.session_id)
    assert (done.returncode, "All are the same, byte for byte" in done.stdout) == (0, True)


@pytest.mark.parametrize("strategy", ['"count"\nkeep_last = 3', '"token-budget"\nmax_tokens = 1500'])
async def test_the_newest_rounds_alone_are_sent(home: Home, strategy: str) -> None:
    home.configure(
        profile=f"max_tool_iterations = 40\n[runtime_profiles.mine.loop_context]\nstrategy = {strategy}\n"
    )
    (home.work / "a.txt").write_text("\n".join(f"line {number}" for number in range(60)))
    home.script({**calls(call("read_file", path="a.txt")), "repeat": 15}, says("done"))
    async with home.talk() as talk:
        turn = await talk.turn("read it often")
    assert {one["reason"] for one in of_kind(turn.updates, "history_trimmed")} == {"loop context trimmed"}
    done = wholeturn(home, "replay", talk.session_id, "--json", "--rows")
    *requests, end = map(json.loads, done.stdout.splitlines())
    assert end["same"]
    newest = requests[-1]["messages"]
    assert "earlier tool rounds of this turn omitted]" in newest[1]["content"]
    assert sum(row["role"] == "tool" for row in newest) < 15


async def test_a_goal_is_a_prompt_and_holds_after_a_restart(home: Home) -> None:
    home.configure(profile='retention = "head-tail"\nmax_history_messages = 3\n')
    home.script(echo="ok {last}")
    async with home.talk() as talk:
        for prompt in ("one", "two", "/goal mend the docs", "four", "five"):
            await talk.turn(prompt)
    async with home.resumed(talk):
        for prompt in ("six", "/goal"):
            turn = await talk.turn(prompt)
    assert "The goal is: mend the docs" in turn.text
    done = wholeturn(home, "replay", talk.session_id, "--json", "--rows")
    *requests, end = map(json.loads, done.stdout.splitlines())
    assert end["same"]
    messages = requests[-1]["messages"]
    assert "Goal changed: mend the docs. " in messages[0]["content"]
    asked = [row["content"] for row in messages if row["role"] == "user"][1:]
    assert asked == ["mend the docs", "five", "six"]
