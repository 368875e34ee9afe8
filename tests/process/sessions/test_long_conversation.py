"""Thirty turns with tools and several trims, then a load: each frame valid by the official schema.

Once with the one exception that is named in `acp_schema` (the product's own kind of update), once with that
kind switched off and no exception at all.
"""

from collections.abc import Sequence

import pytest

from tests.process.homes import Home, call, calls, says
from tests.support.wire_order import TRIM_META, Json
from tests.support.wire_talk import Talk, Turn, greet, of_kind, replayed_turns, text_of

TURNS = 30
PROFILE = "max_history_messages = 12\nmax_context_tokens = 2500\nkeep_tool_context_turns = 1"


def reply_of(number: int) -> list[Json]:
    """What the model does in a turn: now and then tools, good and bad ones, thoughts, long texts."""
    text = says([f"answer {number} ", "word " * (40 * (number % 5)), "end"], when=f"<{number}>")
    if number % 3:
        return [text]
    used = calls(
        call("read_file", path="a.txt"),
        call("search_text", pattern="seven"),
        call("list_dir", path="nowhere"),
        thought=f"what is in the folder? {number}",
        when=f"<{number}>",
    )
    return [used, text]


def trims_of(turns: Sequence[Turn]) -> list[Json]:
    """The facts of every trim, from the twins that every client gets."""
    told = (of_kind(turn.updates, "usage_update") for turn in turns)
    metas = (update.get("_meta", {}).get(TRIM_META) for updates in told for update in updates)
    return [facts for facts in metas if facts]


@pytest.mark.parametrize(
    ("setting", "capabilities"),
    [("always", {"session": {"notices": {}, "compaction": {}}}), ("off", {})],
    ids=["always", "off"],
)
async def test_thirty_turns_that_trim_and_a_load(home: Home, setting: str, capabilities: Json) -> None:
    exception = setting == "always"
    (home.work / "a.txt").write_text("one\nseven\n" + "filler line\n" * 50)
    home.script(*[reply for number in range(TURNS) for reply in reply_of(number)])
    home.configure(profile=PROFILE, acp=f'history_trimmed = "{setting}"')
    turns = []
    async with home.talk(capabilities, trim_exception=exception) as talk:
        for number in range(TURNS):
            turns.append(await talk.turn(f"question <{number}> " + "detail " * 20))
            check_turn(number, turns[-1])
        own = [update for turn in turns for update in of_kind(turn.updates, "history_trimmed")]
        trims = trims_of(turns)
        assert len(trims) >= 5
        assert len(own) == (len(trims) if exception else 0)
        dropped = sum(facts["droppedTurns"] for facts in trims)
        assert 0 < dropped < TURNS
        replay = await load_elsewhere(home, talk, capabilities, exception)
    # What the last answer pushed over the budget goes at the next chance, which is the load.
    dropped += sum(facts["droppedTurns"] for facts in trims_of([Turn(replay)]))
    check_replay(turns, replay, dropped)


def check_turn(number: int, turn: Turn) -> None:
    """One live turn."""
    assert turn.stop == "end_turn", turn.error
    assert turn.text.startswith(f"answer {number} ")
    assert turn.text.endswith("end")
    statuses = [shown["status"] for shown in turn.calls]
    assert statuses == ([] if number % 3 else ["completed", "completed", "failed"])


async def load_elsewhere(home: Home, talk: Talk, capabilities: Json, exception: bool) -> list[Json]:
    """The replay in another process, while the first one is still there."""
    async with home.start(trim_exception=exception) as agent:
        await greet(agent, capabilities)
        there = Talk(agent, talk.session_id, talk.cwd)
        replay = await there.load(agent)
        await there.see("available_commands_update")
    return replay


def check_replay(turns: Sequence[Turn], replay: Sequence[Json], dropped: int) -> None:
    """All of it is there, dropped or not, and the first turn that the model still has is marked."""
    again = replayed_turns(replay)
    assert len(again) == TURNS
    for number, (live, shown) in enumerate(zip(turns, again, strict=True)):
        assert f"question <{number}>" in text_of(shown.updates, "user_message_chunk")
        assert (shown.text, text_of(shown.updates, "agent_thought_chunk")) == (
            live.text,
            f"what is in the folder? {number}" if number % 3 == 0 else "",
        )
        assert [call["content"] for call in shown.calls] == [call["content"] for call in live.calls]
    marked = [number for number, turn in enumerate(again) if TRIM_META in turn.updates[0].get("_meta", {})]
    assert marked == [dropped]
    assert again[dropped].updates[0]["_meta"][TRIM_META] == {"droppedTurns": dropped, "restored": True}
