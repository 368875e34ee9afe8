"""A session with goals, pins and notes about dropped turns, and what is looked up in it."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import trio

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, restore
from runtime.history.rows.boundaries import BREADCRUMB_TEXT
from runtime.providers.scripted.provider import ScriptedProvider
from runtime.replay.stored_session import replay_session
from runtime.session.session import Session
from runtime.setup.session_setup import Summariser
from runtime.store.memory import MemoryStore
from runtime.tools.talk.ask_and_plan import SetGoal
from runtime.values.model import ModelRequest
from runtime.values.profiles import Profile, Route
from runtime.values.prompt import Prompt, with_goal
from runtime.values.stored import SessionRecord, Store
from schemas.transcript import ANY_STEP
from tests.support.fakes import TIME, EchoTool, RecordingClient, make_setup, script

SIZE = 1600
"""Characters of a prompt; a turn costs a bit more than 400 tokens."""


class Talk:
    """A session with goals. Over a store that has it already it is restored."""

    def __init__(
        self, session: Session, client: RecordingClient, store: Store, model: ScriptedProvider
    ) -> None:
        self.session, self.client, self.store, self.model = session, client, store, model

    @property
    def keeper(self):
        return self.session.conversation.keeper

    @property
    def requests(self) -> Sequence[ModelRequest]:
        return self.model.requests

    async def say(self, text: str) -> str:
        text = text if text.startswith("/") else text.ljust(SIZE, ".")
        prompt = with_goal(Prompt(text, ({"type": "text", "text": text},)))
        return await self.session.run(self.session.submit(prompt))

    def prompts(self) -> list[str]:
        """The first words of the user's rows in the last request."""
        rows = self.requests[-1].rows()
        return [
            row.content.strip(".") for row in rows if row.role == "user" and row.content != BREADCRUMB_TEXT
        ]


async def talk(*replies: object, store: Store | None = None, small=None, **settings: Any) -> Talk:
    model = script(*(replies or ({"text": "ok", "repeat": True},)))
    facts: dict[str, Any] = {"retention": "head-tail", "max_context_tokens": 2200, **settings}
    setup = make_setup(model, Profile(**facts), [EchoTool(), SetGoal()], window=16_000)

    async def get():
        await trio.lowlevel.checkpoint()
        return small

    if small is not None:
        setup = replace(setup, summarise=Summariser(get, Route("scripted", "small", 8000)))
    kept, client = store or MemoryStore(), RecordingClient()
    if store is None:
        await kept.create_session(SessionRecord("s", "/project", TIME, TIME))
    record = await head(kept)
    conversation = Conversation("s", Path("/project"), setup, kept, client, state=read_state(record.state))
    if store is not None:
        await restore(conversation)
    return Talk(Session(conversation), client, kept, model)


async def replayed(store: Store) -> list[ModelRequest]:
    async with aclosing(replay_session(store, "s")) as made:
        return [one.call.request async for one in made if one.call is not None]


def sent(request: ModelRequest) -> tuple[object, ...]:
    return request.model, request.rows(), request.tools, request.max_output_tokens


async def stored_steps(store: Store, kind: type) -> list[Any]:
    found = [ANY_STEP.validate_json(entry.payload) for entry in await store.entries("s", limit=10_000)]
    return [step for step in found if isinstance(step, kind)]


async def head(store: Store) -> SessionRecord:
    """The session's head."""
    record = await store.session("s")
    assert record is not None
    return record
