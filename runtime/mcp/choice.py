"""Which tools of all servers a model is told of: one with very many may not push out the others. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Room:
    """What the tools of all servers may take together. tokens: of their schemas, estimated."""

    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Priced(Generic[T]):
    """A tool and what telling it costs, in tokens."""

    tool: T
    tokens: int


def choose(offered: Mapping[str, Sequence[Priced[T]]], room: Room) -> dict[str, tuple[T, ...]]:
    """By server, what is told of its tools: the first that fit into the server's share.

    Every server gets the same share; what a small one leaves is shared by the larger ones. The result depends
    on nothing else, so the same servers give the same tools.
    """
    chosen: dict[str, tuple[T, ...]] = {}
    left = room
    by_size = sorted(offered, key=lambda name: (sum(priced.tokens for priced in offered[name]), name))
    for done, name in enumerate(by_size):
        servers = len(by_size) - done
        taken = _fitting(offered[name], Room(left.tools // servers, left.tokens // servers))
        chosen[name] = tuple(priced.tool for priced in taken)
        left = Room(left.tools - len(taken), left.tokens - sum(priced.tokens for priced in taken))
    return {name: chosen[name] for name in offered}


def _fitting(tools: Sequence[Priced[T]], share: Room) -> list[Priced[T]]:
    taken: list[Priced[T]] = []
    tokens = 0
    for priced in tools:
        if len(taken) < share.tools and tokens + priced.tokens <= share.tokens:
            taken.append(priced)
            tokens += priced.tokens
    return taken
