"""What other processes do with a store that a window has open: look, copy, add, and end in order."""

import itertools
import random
from collections.abc import Awaitable, Callable

from tests.process.homes import Home
from tests.support.wire_talk import greet


class Others:
    """One random act after the other, each in a process of its own. added: sessions that they made."""

    def __init__(self, home: Home, moments: random.Random) -> None:
        self.added = 0
        self._home = home
        self._moments = moments
        self._names = (f"export-{number}.jsonl" for number in itertools.count())
        self._acts: tuple[Callable[[str], Awaitable[None]], ...] = (
            self._lists,
            self._shows,
            self._exports_and_imports,
            self._replays,
            self._runs,
            self._searches,
            self._examines,
            self._opens_a_window,
            self._loads_in_a_window,
        )

    async def act(self, session_id: str, *, calm: bool = True) -> None:
        """One of them, with that session where it needs one. calm: nobody writes to it just now."""
        acts = self._acts if calm else [act for act in self._acts if act != self._replays]
        await self._moments.choice(acts)(session_id)

    async def _command(self, *arguments: str) -> str:
        status, said = await self._home.command(*arguments)
        assert status == 0, (arguments, status, said[-2000:], self._home.log.read_text()[-2000:])
        return said

    async def _lists(self, session_id: str) -> None:
        assert session_id in await self._command("sessions", "list", "--json")

    async def _shows(self, session_id: str) -> None:
        await self._command("sessions", "show", session_id)

    async def _exports_and_imports(self, session_id: str) -> None:
        name = next(self._names)
        await self._command("sessions", "export", session_id, "--output", name)
        await self._command("sessions", "import", name)
        (self._home.work / name).unlink()
        self.added += 1

    async def _replays(self, session_id: str) -> None:
        await self._command("replay", session_id)

    async def _runs(self, session_id: str) -> None:
        await self._command("run", "plain please")
        self.added += 1

    async def _searches(self, session_id: str) -> None:
        await self._command("run", "recall please")
        self.added += 1

    async def _examines(self, session_id: str) -> None:
        await self._command("doctor", "--offline")
        await self._command("inspect", session_id)

    async def _opens_a_window(self, session_id: str) -> None:
        async with self._home.start() as agent:
            await greet(agent)
            await agent.call("session/list", {})
            await agent.call("session/new", {"cwd": str(self._home.work), "mcpServers": []})

    async def _loads_in_a_window(self, session_id: str) -> None:
        async with self._home.start() as agent:
            await greet(agent)
            wanted = {"sessionId": session_id, "cwd": str(self._home.work), "mcpServers": []}
            await agent.call("session/load", wanted)
