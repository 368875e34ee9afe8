"""Pictures that a provider refuses: named, left out of what the model sees, kept in the transcript."""

import base64
from contextlib import aclosing
from pathlib import Path

import pytest

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import replay, restore
from runtime.replay.stored_session import replay_session
from runtime.session.session import Session
from runtime.values.errors import ProviderError
from runtime.values.events import Noticed, UserMessage
from runtime.values.prompt import Prompt
from tests.support.fakes import RecordingClient, make_session, make_setup, script

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 6000).decode()
BLOCKS: tuple[dict[str, object], ...] = (
    {"type": "text", "text": "What is wrong here?"},
    {"type": "image", "mimeType": "image/png", "data": PNG},
)
REFUSED = {
    "error": {
        "status": 400,
        "message": "messages.0.content.1.image.source.base64.data: At least one of the image dimensions "
        "exceed max allowed size for many-image requests: 2000 pixels",
    }
}


async def look(session: Session) -> str:
    return await session.run(session.submit(Prompt("What is wrong here?", BLOCKS)))


async def test_b070_a_refused_picture_is_left_out_with_a_line_and_the_session_goes_on():
    provider = script(REFUSED, {"text": "I cannot see it."}, {"text": "ok"}, {"text": "ok"})
    session, client, store = await make_session(provider)
    assert await look(session) == "end_turn"
    (told,) = [event for event in client.events if isinstance(event, Noticed)]
    assert (told.title, told.description.split(":")[0]) == ("A picture was refused", "[image/png, about 6 kB")
    sent = [request.rows()[-1] for request in provider.requests]
    assert [len(row.images) for row in sent] == [1, 0]
    assert sent[1].content == f"What is wrong here?\n{told.description}"
    assert await session.run(session.submit(Prompt("Just text now.", ()))) == "end_turn"
    live = provider.requests[-1].rows()
    assert not any(row.images for row in live)
    client2 = RecordingClient()
    again = Session(Conversation("s", Path("/project"), make_setup(provider), store, client2))
    await restore(again.conversation)
    await replay(again.conversation)
    shown = [event.block for event in client2.events if isinstance(event, UserMessage)]
    assert shown == list(BLOCKS)
    await again.run(again.submit(Prompt("And now?", ())))
    assert provider.requests[-1].rows()[: len(live)] == live
    async with aclosing(replay_session(store, "s")) as made:
        assert len([one async for one in made if one.call]) == 4


async def test_a_refusal_that_speaks_of_something_else_keeps_the_picture():
    provider = script({"error": {"status": 400, "message": "temperature must be below 2"}}, {"text": "ok"})
    session, _, _ = await make_session(provider)
    with pytest.raises(ProviderError):
        await look(session)
    await session.run(session.submit(Prompt("And now?", ())))
    assert any(row.images for row in provider.requests[-1].rows())
