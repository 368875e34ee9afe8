"""Conversations with real models: a session over any provider, prompts of a known size."""

from collections.abc import Callable
from pathlib import Path

import trio

from runtime.conversation.conversation import Conversation
from runtime.ports import Provider
from runtime.session.session import Session
from runtime.setup.session_setup import Setup
from runtime.store.memory import MemoryStore
from runtime.values.profiles import Profile, Route
from runtime.values.stored import SessionRecord
from tests.support.fakes import RecordingClient, ask, no_local_answer

TIME = "2026-01-01T00:00:00.000Z"
WORDS = ("river", "stone", "market", "lamp", "garden", "coat", "bread", "window", "street", "cloud", "paper")
TURN_SECONDS = 120
"""A bound for one turn on a machine that does other things as well."""


async def new_talk(
    provider: Callable[[], Provider],
    *,
    window: int | None,
    limit: int,
    profile: Profile,
    model: str = "",
) -> tuple[Session, RecordingClient]:
    """A session whose model is what `provider` gives at each call. limit: tokens of an answer."""

    async def get() -> Provider:
        await trio.lowlevel.checkpoint()
        return provider()

    setup = Setup(
        profile=profile,
        route=Route("one", model, window, max_output_tokens=limit),
        tools={},
        system=("Answer in a few words.",),
        provider=get,
        kind="local",
    )
    store, client = MemoryStore(), RecordingClient()
    await store.create_session(SessionRecord("s", "/project", TIME, TIME))
    return Session(Conversation("s", Path("/project"), setup, store, client, local=no_local_answer)), client


def note(number: int, words: int) -> str:
    """A prompt of about so many tokens."""
    text = " ".join(WORDS[(number * 7 + at * (1 + number % 3)) % len(WORDS)] for at in range(words))
    return f"Note {number}: {text}. Which word comes first?"


async def take_turns(session: Session, client: RecordingClient, prompts: list[str]) -> list[str]:
    """Each prompt's stop reason. Every one must be answered with some text, in bounded time."""
    ends = []
    for prompt in prompts:
        before = len(client.text())
        with trio.fail_after(TURN_SECONDS):
            ends.append(await ask(session, prompt))
        assert client.text()[before:].strip(), prompt
    return ends
