"""A session driven at random with turns that are shortened, and restarted in between: the replay agrees.

Each seed is one session. Among them are those with which a replay once differed.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random

import pytest
import trio

from runtime.conversation.load_and_fork import stored_history
from runtime.store.memory import MemoryStore
from runtime.values.errors import WholeturnError
from runtime.values.profiles import Profile
from runtime.values.stored import Store
from tests.runtime.trimming.rigs import LookTool, Rig, replayed, rig, trimmer
from tests.support.fakes import prompt, script

SEEDS = int(os.environ.get("RESTART_SEEDS", "12"))
FOUND = (107, 129, 146, 159, 164, 181, 187)
WINDOWS = (2000, 3000, 4000)
TRIMMERS = (None, None, "count:3", "count:6", "token-budget:3000", "summarize:1500/2")
REFUSED = (
    {"error": {"status": 413}},
    {"error": {"status": 400, "message": "maximum context length is 1900 tokens."}},
)
SILENT = {"text": "", "hang": True, "repeat": True}


@dataclass(slots=True)
class Life:
    """One session and what chance makes of it."""

    chance: Random
    one: Rig = field(init=False)
    store: Store = field(init=False)
    window: int = 4000
    profile: Profile = field(default_factory=Profile)
    trims: str | None = None
    size: int = 2000

    async def begin(self) -> None:
        self.size = self.chance.choice((400, 1200, 2000, 3000))
        self.limit()
        self.one = await rig(None, {"text": "x"}, tools=[LookTool(self.size)])
        self.store = self.one.store
        await self.restart(at_once=True)

    def limit(self) -> None:
        """Other limits."""
        choice = self.chance.choice
        self.window, self.trims = choice(WINDOWS), choice(TRIMMERS)
        self.profile = Profile(
            running_turn_overflow="shorten",
            max_tool_iterations=30,
            max_context_tokens=choice((None, 1500, 3000)),
            trim_slack_ratio=choice((0.0, 0.2)),
            max_history_messages=choice((None, 1, 3)),
        )

    async def restart(self, *, at_once: bool) -> None:
        """The session in a new process. at_once: what is too much goes with the load."""
        small = script({"text": "short", "repeat": True})
        made = self.trims and trimmer(self.trims, small, self.profile.trim_slack_ratio)
        self.one = await rig(
            made or None,
            {"text": "x"},
            profile=self.profile,
            window=self.window,
            tools=[LookTool(self.size)],
            store=self.store,
            trim=at_once,
        )

    async def crash(self) -> None:
        """The last turn was not stored to its end."""
        entries, record = await self.store.entries("s", limit=100_000), await self.store.session("s")
        # The session's head is not taken back, so neither is what changed it.
        fixed = [at for at, entry in enumerate(entries, 1) if entry.kind in ("prompt", "trim")]
        if not fixed or record is None:
            return
        self.store = MemoryStore()
        await self.store.create_session(record)
        await self.store.append("s", entries[: self.chance.randint(fixed[-1], len(entries))])

    def replies(self) -> list[object]:
        """Tool rounds and an answer, some of them refused as too long."""
        look = {"calls": [{"name": "look", "arguments": {}}] * self.chance.choice((1, 1, 2))}
        made: list[object] = [look] * self.chance.randint(0, 8)
        made.append({"text": "done " * self.chance.choice((1, 100))})
        if self.chance.random() < 0.3:
            made.insert(self.chance.randint(0, len(made)), self.chance.choice(REFUSED))
        return made

    async def talk(self, texts: list[str], replies: list[object], *, stopped: bool) -> None:
        """Prompts one behind the other. stopped: they are cancelled after a second."""
        model, keeper = script(*replies), self.one.session.conversation.keeper

        async def get():
            await trio.lowlevel.checkpoint()
            return model

        keeper.setup = replace(keeper.setup, provider=get)
        session = self.one.session
        tickets = [session.submit(prompt(text)) for text in texts]

        async def run(ticket) -> None:
            with suppress(WholeturnError):
                await session.run(ticket)

        async with trio.open_nursery() as nursery:
            for ticket in tickets:
                nursery.start_soon(run, ticket)
            if stopped:
                await trio.sleep(1)
                session.cancel()

    async def step(self, number: int) -> None:
        """Whatever comes next."""
        match self.chance.choice(("ask", "ask", "join", "queue", "stop", "load", "resume", "crash")):
            case "load" | "resume" | "crash" as how:
                if how == "crash":
                    await self.crash()
                if self.chance.random() < 0.5:
                    self.limit()
                await self.restart(at_once=how != "resume")
            case "ask":
                await self.talk([f"p{number}"], self.replies(), stopped=False)
            case "join":
                await self.talk([f"[Tool results] j{number}"], self.replies(), stopped=False)
            case "queue":
                texts = [f"p{number}", f"[Tool results] q{number}"]
                await self.talk(texts, [*self.replies(), *self.replies()], stopped=False)
            case _:
                await self.talk([f"p{number}"], [*self.replies()[:-1], SILENT], stopped=True)

    async def check(self) -> None:
        """The replay agrees, and the next process begins with what this one has."""
        await replayed(self.store)
        talk = self.one.session.conversation
        stored, live = await stored_history(talk), talk.keeper.history
        assert [turn.rows for turn in stored.turns] == [turn.rows for turn in live.turns]
        if live.current is not None:
            assert stored.marks.rounds_cut == live.marks.rounds_cut


@pytest.mark.parametrize("seed", [*range(SEEDS), *FOUND])
async def test_what_was_shortened_stays_so_behind_a_restart(seed: int, autojump_clock):
    life = Life(Random(seed))
    with trio.fail_after(10_000):
        await life.begin()
        for number in range(life.chance.randint(3, 9)):
            await life.step(number)
            await life.check()
