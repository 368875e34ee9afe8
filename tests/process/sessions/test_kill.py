"""`kill -9` at random moments of a conversation with tools and trims. KILL_ROUNDS: how often, default 5.

Each round is a new process: it loads what the last one left, all finished turns must be there, the next
prompt must work (the scripted model refuses a call without its result). Then other processes look at the
store or add to it, and end in order; the first one goes on, and is killed in turn. KILL_SEED repeats the
moments of a run that failed. Two halves of the rounds may run side by side: `pytest -n 2 --dist load`.
"""

import os
import random
from dataclasses import dataclass, field

import pytest
import trio

from tests.process.homes import Home, call, calls, says
from tests.process.others import Others
from tests.support.wire import Agent
from tests.support.wire_order import FINAL, Json
from tests.support.wire_talk import Talk, Turn, greet, of_kind, replayed_turns, text_of

ROUNDS = int(os.environ.get("KILL_ROUNDS", "5"))
HALVES = 2
SEED = int(os.environ.get("KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
ROUNDS_A_SESSION = 25
"""Each round reads all that was said before, so a session may not grow for ever."""
LONGEST_ROUND = 0.8
"""Seconds of conversation before the kill: several turns, so that it strikes at any step of one."""
PROFILE = "max_history_messages = 4\nmax_context_tokens = 3000\nkeep_tool_context_turns = 1"
WORDS = [f"word {number} " for number in range(12)]


@dataclass
class Story:
    """What was asked so far, in order, and the answers of those prompts that were answered."""

    prompts: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)

    def next(self) -> str:
        """The next prompt; two of three use tools."""
        number = len(self.prompts)
        self.prompts.append(f"<{number}> {'plain' if number % 3 == 2 else 'tools'} please")
        return self.prompts[-1]


def prepare(home: Home) -> None:
    """A model that goes on for ever, and files for its tools."""
    (home.work / "a.txt").write_text("one\nseven\n" + "filler\n" * 60)
    home.configure(profile=PROFILE)
    home.script(
        calls(
            call("read_file", path="a.txt"),
            call("search_text", pattern="seven"),
            call("read_file", path="none"),
            text="Let me look.",
            when="tools",
        ),
        calls(call("recall_history", query="seven"), when="recall"),
        says("That was it.", when="recall"),
        says(WORDS, chunk_delay=0.003, when="tools"),
        says(WORDS, chunk_delay=0.01, when="plain"),
        loop=True,
    )


async def talk_on(talk: Talk, story: Story, seconds: float) -> None:
    """Prompt after prompt, then the kill; a turn whose answer had come by then counts as finished."""
    asked: dict[int, str] = {}
    with trio.move_on_after(seconds):
        while True:
            prompt = story.next()
            request_id = await talk.ask(prompt)
            asked[request_id] = prompt
            await talk.end_of(request_id)
    await talk.agent.kill()
    for request_id, prompt in asked.items():
        frame = next((f for f in talk.agent.frames if f.get("id") == request_id and "method" not in f), None)
        if frame is not None:
            assert frame["result"]["stopReason"] == "end_turn", frame
            story.answers[prompt] = expected(prompt)


def expected(prompt: str) -> str:
    """What the model says to a prompt, all of it."""
    return ("Let me look." if "tools" in prompt else "") + "".join(WORDS)


def check_replay(replay: list[Json], story: Story) -> None:
    """Every finished turn whole and in order; of the others as much as was stored, never a running call."""
    turns = {text_of(turn.updates, "user_message_chunk"): turn for turn in replayed_turns(replay)}
    assert list(turns) == [prompt for prompt in story.prompts if prompt in turns]
    for prompt, answer in story.answers.items():
        assert turns[prompt].text == answer, prompt
        check_calls(turns[prompt], 3 if "tools" in prompt else 0)
    for prompt, turn in turns.items():
        assert expected(prompt).startswith(turn.text)
        assert all(shown["status"] in FINAL for shown in turn.calls)


def check_calls(turn: Turn, count: int) -> None:
    """The calls of a finished turn with what they gave."""
    statuses = [shown["status"] for shown in turn.calls]
    assert statuses == ["completed", "completed", "failed"][:count]


async def one_round(home: Home, talk: Talk, story: Story, agent: Agent, moments: random.Random) -> int:
    """Load, check, one whole turn, others, then on until the kill. Returns the trims that were told."""
    others = Others(home, moments)
    await greet(agent)
    check_replay(await talk.load(agent), story)
    if moments.random() < 0.5:
        await others.act(talk.session_id)
    prompt = story.next()
    turn = await talk.turn(prompt)
    assert (turn.stop, turn.text) == ("end_turn", expected(prompt)), turn.error
    story.answers[prompt] = turn.text
    await others.act(talk.session_id)
    await talk_on(talk, story, moments.uniform(0, LONGEST_ROUND))
    return len(of_kind(talk.updates(), "history_trimmed"))


@pytest.mark.parametrize("half", range(HALVES))
async def test_kill_at_random_moments_loses_no_finished_turn(quick_home: Home, half: int) -> None:
    try:
        await rounds(quick_home, random.Random(SEED + half), (ROUNDS + half) // HALVES)
    except BaseException as error:
        error.add_note(f"KILL_SEED={SEED} repeats the moments")
        raise


async def rounds(home: Home, moments: random.Random, count: int) -> None:
    """So many rounds, in as many sessions as it takes."""
    prepare(home)
    for done in range(0, count, ROUNDS_A_SESSION):
        await one_session(home, moments, min(ROUNDS_A_SESSION, count - done))


async def one_session(home: Home, moments: random.Random, count: int) -> None:
    """A session that is killed `count` times and once more; in the end all its requests can be made again."""
    story, trims = Story(), 0
    async with home.talk() as talk:
        await talk_on(talk, story, moments.uniform(0, LONGEST_ROUND))
    for _ in range(count):
        async with home.start() as agent:
            trims += await one_round(home, talk, story, agent, moments)
    async with home.resumed(talk) as replay:
        check_replay(replay, story)
    assert trims >= min(count, 3) - 1
    await check_requests(home, talk.session_id)


async def check_requests(home: Home, session_id: str) -> None:
    """Every request that the store tells of comes out byte for byte, whatever became of its turn."""
    status, said = await home.command("replay", session_id)
    assert status == 0, (said[-2000:], home.log.read_text()[-2000:])


async def test_a_kill_while_the_model_is_silent_loses_nothing_that_was_shown(home: Home) -> None:
    """Text is stored soon after it was shown, whether or not more of it comes."""
    home.script(says(["half ", "an ans"], hang=True), echo="never")
    async with home.talk() as talk:
        await talk.ask("go")
        await talk.agent.until(lambda frame: "an ans" in str(frame))
        await trio.sleep(0.6)  # real time is the point: it is stored at least four times a second
        await talk.agent.kill()
    home.script(echo="yes")
    async with home.resumed(talk) as replay:
        assert text_of(replay) == "half an ans"
        assert (await talk.turn("go on")).text == "yes"
