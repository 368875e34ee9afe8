"""A connection that a test opens, changes and breaks; nothing is started."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from runtime.mcp.remote_tool import Offer, RemoteTool, ServerTrouble
from runtime.mcp.settings import ServerSettings


def tools(*names: str, **more: object) -> tuple[RemoteTool, ...]:
    return tuple(RemoteTool(name, name.title(), f"Does {name}.", {"type": "object"}) for name in names)


@dataclass
class FakeLink:
    """Answers at once. `end` breaks it."""

    offered: Offer
    wake: Callable[[], None]
    ended: str = ""
    listed: int = 0

    def change(self, *names: str) -> None:
        self.offered = Offer(tools(*names))
        self.wake()

    def end(self, why: str) -> None:
        self.ended = why
        self.wake()

    async def offer(self) -> Offer:
        await trio.lowlevel.checkpoint()
        self.listed += 1
        return self.offered

    async def call(self, tool: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        await trio.lowlevel.checkpoint()
        return {"content": [{"type": "text", "text": f"{tool}: {dict(arguments)}"}]}

    async def resources(self) -> tuple[Mapping[str, object], ...]:
        await trio.lowlevel.checkpoint()
        return ({"uri": "doc://a", "name": "a"}, {"uriTemplate": "doc://{x}", "name": "x"})

    async def read(self, uri: str) -> Mapping[str, object]:
        await trio.lowlevel.checkpoint()
        return {"contents": [{"uri": uri, "text": "its text"}]}


@dataclass
class FakeWorld:
    """What happens at each attempt to connect to a server, by name: an offer, trouble, or a wait before it.

    Of several entries each serves one attempt, the last one all further ones.
    """

    plans: dict[str, list[Offer | ServerTrouble | float]]
    links: dict[str, FakeLink] = field(default_factory=dict)
    attempts: list[tuple[str, float]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def connect(self, server: ServerSettings, wake: Callable[[], None]) -> AsyncIterator[FakeLink]:
        self.attempts.append((server.name, round(trio.current_time(), 3)))
        plans = self.plans[server.name]
        plan = plans.pop(0) if len(plans) > 1 else plans[0]
        if isinstance(plan, float):
            await trio.sleep(plan)
            plan = plans.pop(0) if len(plans) > 1 else plans[0]
        await trio.lowlevel.checkpoint()
        if isinstance(plan, ServerTrouble):
            raise plan
        assert isinstance(plan, Offer)
        link = self.links[server.name] = FakeLink(plan, wake)
        try:
            yield link
        finally:
            self.closed.append(server.name)

    def times(self, name: str) -> list[float]:
        """When the attempts were, from the first one on, in seconds."""
        all_times = [time for other, time in self.attempts if other == name]
        return [round(time - all_times[0], 3) for time in all_times]
