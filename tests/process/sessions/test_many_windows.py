"""Five processes work on one session in turn while others look at the store: no answer is lost.

MANY_ROUNDS: how often, default 2; MANY_PROMPTS: of each process, default 8; MANY_SEED repeats the moments.
Two halves of the rounds may run side by side: `MANY_ROUNDS=20 MANY_PROMPTS=40 pytest -n 2 --dist load`.
"""

import os
import random
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
import trio

from tests.process.homes import Home, call, calls
from tests.process.others import Others
from tests.support.wire_talk import Talk, greet, replayed_turns, text_of

WINDOWS = 5
HALVES = 2
ROUNDS = int(os.environ.get("MANY_ROUNDS", "2"))
PROMPTS = int(os.environ.get("MANY_PROMPTS", "8"))
SEED = int(os.environ.get("MANY_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
SECONDS_A_PROMPT = 10.0
"""On a machine under load; it bounds the whole test."""
MOST_IN_A_ROW = 6
CHECK = (
    "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute('PRAGMA integrity_check').fetchone())"
)


@dataclass
class Round:
    """One session and all who use it. answered: prompts whose end was heard, in order."""

    home: Home
    session_id: str
    moments: random.Random
    answered: list[str] = field(default_factory=list)
    working: int = WINDOWS

    async def window(self, name: str) -> None:
        """A window that is opened again and again until all its prompts were answered."""
        left = [f"<{name}.{number}>" for number in range(PROMPTS)]
        while left:
            async with self.home.start() as agent:
                await greet(agent)
                talk = Talk(agent, self.session_id, self.home.work)
                await talk.load(agent)
                count = self.moments.randrange(1, MOST_IN_A_ROW)
                if await self._ask(talk, left[:count]):
                    del left[:count]
                    await self._leave(talk)
        self.working -= 1

    async def _ask(self, talk: Talk, prompts: list[str]) -> bool:
        """Whether the session was free; then all of them were answered."""
        for prompt in prompts:
            turn = await talk.turn(prompt)
            if turn.error is not None and prompt == prompts[0]:
                assert turn.error.data["kind"] == "session_in_use", turn.error
                await trio.sleep(self.moments.uniform(0, 0.05))  # another window has it for a while
                return False
            assert (turn.stop, turn.error) == ("end_turn", None)
            self.answered.append(prompt)
        return True

    async def _leave(self, talk: Talk) -> None:
        """Close the session, end in order, or be killed."""
        match self.moments.randrange(3):
            case 0:
                await talk.agent.kill()
            case 1:
                await talk.agent.call("session/close", {"sessionId": self.session_id})
                await talk.agent.call("session/list", {})

    async def others(self) -> None:
        """One other process after the other, as long as a window works."""
        others = Others(self.home, self.moments)
        while self.working:
            await others.act(self.session_id, calm=False)

    async def check(self) -> None:
        """A new process has all that was answered, the file is sound, and every request can be made again."""
        async with self.home.start() as observer:
            await greet(observer)
            replay = await Talk(observer, self.session_id, self.home.work).load(observer)
        answers = {text_of(turn.updates, "user_message_chunk"): turn.text for turn in replayed_turns(replay)}
        lost = [prompt for prompt in self.answered if not answers.get(prompt, "").endswith(f"heard {prompt}")]
        assert lost == []
        assert [prompt for prompt in answers if prompt in self.answered] == self.answered
        assert len(self.answered) == WINDOWS * PROMPTS
        store = self.home.data / "sessions.db"
        command = [sys.executable, "-c", CHECK, str(store)]
        done = await trio.run_process(command, capture_stdout=True, stderr=subprocess.DEVNULL)
        assert done.stdout == b"ok\n"
        status, said = await self.home.command("replay", self.session_id)
        assert status == 0, said[-2000:]


@pytest.mark.parametrize("half", range(HALVES))
async def test_five_processes_on_one_session_lose_no_answer(quick_home: Home, half: int) -> None:
    moments = random.Random(SEED + half)
    quick_home.script(
        calls(call("recall_history", query="heard"), when="recall"), echo="{turn}: heard {last}"
    )
    try:
        for _ in range((ROUNDS + half) // HALVES):
            await one_round(quick_home, moments)
    except BaseException as error:
        error.add_note(f"MANY_SEED={SEED} repeats the moments")
        raise


async def one_round(home: Home, moments: random.Random) -> None:
    """A new session, all its windows and the others, then the count."""
    async with home.talk() as talk:
        pass
    each = Round(home, talk.session_id, moments)
    with trio.fail_after(60 + WINDOWS * PROMPTS * SECONDS_A_PROMPT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(each.others)
            for number in range(WINDOWS):
                nursery.start_soon(each.window, str(number))
    await each.check()
