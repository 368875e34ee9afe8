"""Two server processes on one session: the second one reads, and goes on when the first one is gone."""

import itertools
import os
import random
import signal
import sqlite3

import pytest
import trio

from tests.process.homes import Home, call, calls, says
from tests.process.others import Others
from tests.support.wire import Agent
from tests.support.wire_talk import Talk, Turn, greet, of_kind, replayed_turns, text_of

EDITOR = {"name": "zed", "title": "Zed", "version": "1.0"}


async def greet_as(agent: Agent, info: dict[str, str]) -> None:
    """`initialize` of a client that says who it is."""
    params = {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": info}
    await agent.call("initialize", params)


def prompts_of(replay: list[dict[str, object]]) -> list[str]:
    """The prompts of a replay."""
    return [text_of(turn.updates, "user_message_chunk") for turn in replayed_turns(replay)]


def refusal(turn: Turn) -> str:
    """Why a prompt was refused."""
    assert turn.error is not None
    error = turn.error.error
    assert error["code"] == -32600
    assert error["data"]["kind"] == "session_in_use"
    return str(error["message"])


async def test_the_second_window_reads_is_told_who_writes_and_goes_on_after_a_close(home: Home) -> None:
    home.script(echo="{turn}: heard")
    async with home.start() as first, home.start() as second:
        await greet_as(first, EDITOR)
        await greet(second)
        zed = await Talk.new(first, home.work)
        await zed.turn("one")
        other = Talk(second, zed.session_id, home.work)
        assert prompts_of(await other.load(second)) == ["one"]
        refused = await other.turn("mine")
        assert f"in use by Zed (process {first.process.pid} on {os.uname().nodename})" in refusal(refused)
        assert "in use by Zed" in refused.text
        await zed.turn("two")
        await first.call("session/close", {"sessionId": zed.session_id})
        turn = await other.turn("three")
        assert turn.stop == "end_turn"
        assert turn.text == "3: heard"
        assert "went on in another window" in turn.asides
    async with home.resumed(other) as replay:
        assert prompts_of(replay) == ["one", "two", "three"]


async def test_the_end_of_a_process_sets_its_session_free(home: Home) -> None:
    home.script(echo="{turn}: heard")
    async with home.talk() as talk:
        await talk.turn("one")
    async with home.resumed(talk):
        assert (await talk.turn("two")).text == "2: heard"


async def test_a_killed_process_sets_its_session_free_at_once(home: Home) -> None:
    home.script(says(["begun"], hang=True), echo="{turn}: heard")
    async with home.start() as first, home.start() as second:
        for agent in (first, second):
            await greet(agent)
        talk = await Talk.new(first, home.work)
        await talk.ask("one")
        await first.until(lambda frame: "begun" in str(frame))
        other = Talk(second, talk.session_id, home.work)
        home.script(echo="{turn}: heard")
        await other.load(second)
        assert "in use by" in refusal(await other.turn("too early"))
        await first.kill()
        turn = await other.turn("two")
        assert (turn.stop, turn.error) == ("end_turn", None)
        assert prompts_of(await other.load(second)) == ["one", "two"]


@pytest.mark.skipif(not hasattr(os, "kill"), reason="needs signals")
async def test_a_stopped_process_keeps_its_session_for_a_while_only(home: Home) -> None:
    """A process that stands still is alive. Its lease is let run out here by the clock in the file."""
    home.script(echo="{turn}: heard")
    async with home.start() as first, home.start() as second:
        for agent in (first, second):
            await greet(agent)
        talk = await Talk.new(first, home.work)
        await talk.turn("one")
        other = Talk(second, talk.session_id, home.work)
        await other.load(second)
        os.kill(first.process.pid, signal.SIGSTOP)
        try:
            assert "in use by" in refusal(await other.turn("too early"))
            with sqlite3.connect(home.data / "sessions.db") as store:
                store.execute("UPDATE leases SET expires_at = 1")
            store.close()
            assert (await other.turn("two")).stop == "end_turn"
        finally:
            os.kill(first.process.pid, signal.SIGCONT)
        late = await talk.turn("late")
        assert late.error is not None
        assert "in use by" in str(late.error.error["message"])
        assert prompts_of(await other.load(second)) == ["one", "two"]


async def test_sessions_of_two_processes_do_not_disturb_each_other(home: Home) -> None:
    home.script(echo="{turn}: heard")
    async with home.start() as first, home.start() as second:
        talks = []
        for agent in (first, second):
            await greet(agent)
            talks.append(await Talk.new(agent, home.work))
        async with trio.open_nursery() as nursery:
            for talk in talks:
                nursery.start_soon(talk.turn, "one")
        assert [of_kind(talk.updates(), "agent_message_chunk") != [] for talk in talks] == [True, True]


ROUNDS = int(os.environ.get("KILL_ROUNDS", "5"))
HALVES = 2
SEED = int(os.environ.get("KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
ROUNDS_A_SESSION = 25
WORDS = [f"word {number} " for number in range(8)]


@pytest.mark.parametrize("half", range(HALVES))
async def test_two_processes_that_are_killed_in_turn_lose_no_finished_turn(
    quick_home: Home, half: int
) -> None:
    """Each round the second process has the session open, sees the first one die and goes on at once. Others
    look at the store meanwhile and end in order; what was answered is counted by a new process.
    """
    home, moments = quick_home, random.Random(SEED + half)
    home.configure(profile="max_history_messages = 4")
    home.script(
        calls(call("recall_history", query="word"), when="recall"), says(WORDS, chunk_delay=0.004), loop=True
    )
    finished: list[str] = []
    try:
        for number in range((ROUNDS + half) // HALVES):
            if number % ROUNDS_A_SESSION == 0:
                # Each round reads all that was said before, so a session may not grow for ever.
                finished = []
                async with home.talk() as talk:
                    pass
            await one_round(home, talk.session_id, number, moments, finished)
    except BaseException as error:
        error.add_note(f"KILL_SEED={SEED} repeats the moments")
        raise
    async with home.start() as observer:
        await check_finished(observer, talk.session_id, home, finished)


async def one_round(
    home: Home, session_id: str, number: int, moments: random.Random, finished: list[str]
) -> None:
    """One process writes and is killed; one that has loaded the session before goes on, and ends in order."""
    others = Others(home, moments)
    async with home.start() as first, home.start() as second:
        await check_finished(first, session_id, home, finished)
        await check_finished(second, session_id, home, finished)
        talks = [Talk(agent, session_id, home.work) for agent in (first, second)]
        if moments.random() < 0.5:
            await others.act(session_id)
        await ask_until_killed(talks[0], number, moments.uniform(0, 0.3), finished)
        if moments.random() < 0.5:
            await others.act(session_id)
        await take_over(talks[1], f"<{number}> first", finished)
        if moments.random() < 0.5:
            await others.act(session_id)
            await take_over(talks[1], f"<{number}> last", finished)
        if moments.random() < 0.5:
            await second.kill()


async def ask_until_killed(talk: Talk, number: int, seconds: float, finished: list[str]) -> None:
    """Prompt after prompt; those that were answered by the time of the kill count as finished."""
    with trio.move_on_after(seconds):
        for count in itertools.count(2):
            turn = await talk.turn(f"<{number}> {count}")
            if turn.stop == "end_turn":
                finished.append(f"<{number}> {count}")
    await talk.agent.kill()


async def take_over(other: Talk, prompt: str, finished: list[str]) -> None:
    """The first prompt of the process that was only looking until now."""
    turn = await other.turn(prompt)
    assert (turn.stop, turn.text) == ("end_turn", "".join(WORDS)), turn.error
    finished.append(prompt)


async def check_finished(agent: Agent, session_id: str, home: Home, finished: list[str]) -> None:
    """A new process finds all that was answered, in order and whole."""
    await greet(agent)
    replay = replayed_turns(await Talk(agent, session_id, home.work).load(agent))
    answers = {text_of(each.updates, "user_message_chunk"): each.text for each in replay}
    assert [name for name in answers if name in finished] == finished
    assert {answers[name] for name in finished} <= {"".join(WORDS)}
