"""A store that stands still under a real server: nothing answered is lost untold, and a cancel is heard.

Several stalls at the same time, each with a server of its own. STALL_SECONDS="5 22 40" names others.
"""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.process.homes import Home
from tests.process.stalls import command, compiler, library
from tests.support.postgres import Server
from tests.support.wire import Agent
from tests.support.wire_talk import Talk, Turn, greet, replayed_turns, text_of

SECONDS = tuple(float(word) for word in os.environ.get("STALL_SECONDS", "5 22").split())
PATIENCE_SECONDS = 10
"""How long the server waits for its store before it goes on without it."""
HEARD_SECONDS = 1.0
"""How long a cancel may take."""
BUSY_SECONDS, SLACK_SECONDS = 2.0, 4.0
"""What a machine with other work may add to that, and to a turn."""
SAYS_SO = "stands still"

PLAIN = [sys.executable, "-m", "acp_server"]

Stall = Callable[[], AbstractContextManager[None]]
Started = Callable[[Home], tuple[list[str], Stall]]
"""Gives how a home's server is started, and what holds its store up."""


def by_library(home: Home) -> tuple[list[str], Stall]:
    """The disk: each sync waits."""
    sign = home.root / "stalled"
    home.extra_env |= {"LD_PRELOAD": str(library(home.root)), "STALL_WHILE": str(sign)}
    return PLAIN, lambda: present(sign)


def by_thread(home: Home) -> tuple[list[str], Stall]:
    """The store's thread: each commit waits. Needs no compiler."""
    sign = home.root / "stalled"
    return command(sign), lambda: present(sign)


@contextmanager
def present(sign: Path) -> Iterator[None]:
    """A file that is there meanwhile."""
    sign.touch()
    try:
        yield
    finally:
        sign.unlink()


WAYS = [
    pytest.param(by_library, marks=pytest.mark.skipif(compiler() is None, reason="no C compiler")),
    by_thread,
]


class Story:
    """One home's conversation. answered: the prompts with their turns. at_risk: those of them of which the
    person was told that they are kept in memory, or were answered after that was told.
    """

    def __init__(self) -> None:
        self.answered: dict[str, Turn] = {}
        self.told = False
        self.at_risk: set[str] = set()

    async def turn(self, talk: Talk, prompt: str) -> float:
        """A prompt that must be answered; how long that took."""
        began = trio.current_time()
        turn = await talk.turn(prompt)
        assert (turn.stop, turn.error) == ("end_turn", None)
        assert turn.text.endswith(f"you said {prompt}")
        self.told = self.told or SAYS_SO in turn.asides
        self.answered[prompt] = turn
        if self.told:
            self.at_risk.add(prompt)
        return trio.current_time() - began


@asynccontextmanager
async def talking(home: Home, started: list[str]) -> AsyncIterator[tuple[Talk, Agent]]:
    async with home.start(command=started) as agent:
        await greet(agent)
        yield await Talk.new(agent, home.work), agent


async def meanwhile(talk: Talk, story: Story, seconds: float) -> None:
    """What is done while the store stands still. It ends in the middle of it, unless the stall is short."""
    taken = await story.turn(talk, "during")
    assert taken < min(seconds, PATIENCE_SECONDS) + SLACK_SECONDS
    if seconds > PATIENCE_SECONDS:
        assert SAYS_SO in story.answered["during"].asides
        assert await story.turn(talk, "meanwhile") < SLACK_SECONDS
        assert await cancelled(talk) < HEARD_SECONDS + BUSY_SECONDS
        with trio.fail_after(SLACK_SECONDS):
            # A session that is made meanwhile works too.
            other = await Talk.new(talk.agent, talk.cwd)
            assert (await other.turn("other")).text == "1: you said other"


async def cancelled(talk: Talk) -> float:
    """Seconds from a cancel to its answer."""
    asked = await talk.ask("<hang>")
    await talk.see("agent_message_chunk", since=len(talk.agent.frames) - 1)
    began = trio.current_time()
    await talk.cancel()
    turn = await talk.end_of(asked)
    assert turn.stop == "cancelled"
    return trio.current_time() - began


async def check(home: Home, talk: Talk, story: Story, *, may_lack: set[str]) -> None:
    """Another process has every answered turn once, whole and in order, and works."""
    async with home.start() as agent:
        await greet(agent)
        replayed = replayed_turns(await talk.load(agent))
        texts = {text_of(turn.updates, "user_message_chunk"): turn.text for turn in replayed}
        assert len(texts) == len(replayed)
        lacking = False
        for prompt, turn in story.answered.items():
            stored = texts.get(prompt, "")
            # What is there is a beginning of what was: nothing stands behind a gap.
            assert stored == turn.text or (prompt in may_lack and turn.text.startswith(stored)), prompt
            assert not (lacking and stored), prompt
            lacking = lacking or stored != turn.text
        known = [prompt for prompt in texts if prompt in story.answered]
        assert known == [prompt for prompt in story.answered if prompt in texts]
        await story.turn(talk, "afterwards")


async def goes_on(home: Home, started: list[str], stall: Stall, seconds: float) -> None:
    """The stall ends, and the server is closed in order."""
    story = Story()
    async with talking(home, started) as (talk, _):
        await story.turn(talk, "before")
        async with trio.open_nursery() as nursery:
            with stall():
                nursery.start_soon(meanwhile, talk, story, seconds)
                await trio.sleep(seconds)
        await story.turn(talk, "after")
    await check(home, talk, story, may_lack=set())


async def ends(home: Home, started: list[str], stall: Stall, *, kill: bool) -> None:
    """The server is killed, or closed in order, while its store stands still."""
    story = Story()
    with stalled_later(stall) as stop:
        async with talking(home, started) as (talk, agent):
            await story.turn(talk, "before")
            stop()
            await meanwhile(talk, story, PATIENCE_SECONDS + 1)
            if kill:
                await agent.kill()
    await check(home, talk, story, may_lack=story.at_risk)


@contextmanager
def stalled_later(stall: Stall) -> Iterator[Callable[[], None]]:
    """What holds the store up, until the end of the block, from the moment when it is called."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(stall())


def machine(root: Path) -> Home:
    """A home with a model that repeats what it is told, and hangs when it is told to."""
    root.mkdir()
    home = Home(root)
    home.script({"text": "hm", "hang": True, "when": "<hang>"}, echo="{turn}: you said {last}")
    return home


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_answered_is_lost_untold(tmp_path: Path, way: Started) -> None:
    async with trio.open_nursery() as nursery:
        for seconds in SECONDS:
            home = machine(tmp_path / str(seconds))
            nursery.start_soon(goes_on, home, *way(home), seconds)
        for kill in (False, True):
            home = machine(tmp_path / ("killed" if kill else "closed"))
            nursery.start_soon(partial(ends, kill=kill), home, *way(home))


@pytest.mark.system
async def test_nothing_answered_is_lost_untold_with_a_database(tmp_path: Path) -> None:
    with ExitStack() as stack:
        async with trio.open_nursery() as nursery:
            for name in ("on", "killed", "closed"):
                server = stack.enter_context(running())
                home = machine(tmp_path / name)
                home.extra_env["WHOLETURN_STORE"] = server.address()
                if name == "on":
                    nursery.start_soon(goes_on, home, PLAIN, server.standing_still, max(SECONDS))
                else:
                    nursery.start_soon(
                        partial(ends, kill=name == "killed"), home, PLAIN, server.standing_still
                    )


@contextmanager
def running() -> Iterator[Server]:
    """A database server of the test's own."""
    server = Server()
    server.start()
    try:
        yield server
    finally:
        server.remove()
