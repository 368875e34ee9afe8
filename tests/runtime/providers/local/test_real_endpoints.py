"""The same model behind HTTP: each of our adapters talks to an endpoint of its own API, and trims."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from runtime.history.rows.overflow import is_context_overflow, stated_sizes
from runtime.providers.anthropic.provider import AnthropicProvider
from runtime.providers.http.client import HttpProvider
from runtime.providers.local.engine import Launch, library, parameters
from runtime.providers.openai_chat.provider import OpenAIProvider
from runtime.providers.openai_responses.provider import ResponsesProvider
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import ProviderError
from runtime.values.model import ModelRequest, Segment
from runtime.values.profiles import Profile
from runtime.values.rows import Row
from tests.runtime.providers.local.talks import new_talk, note, take_turns

KEY = "a-key-of-this-test"
N_CTX = 1024
ADAPTERS = {
    "openai": (OpenAIProvider, "/v1"),
    "openai_responses": (ResponsesProvider, "/v1"),
    "anthropic": (AnthropicProvider, ""),
}


@pytest.fixture(scope="module")
def address(smollm2: Path) -> Iterator[str]:
    """llama.cpp's own server, on loopback."""
    module = library()
    server = module.Server(parameters(module, Launch(smollm2, N_CTX, 1), "127.0.0.1", KEY))
    yield server.listening_address
    del server


@pytest.fixture(params=ADAPTERS)
async def adapter(request, address: str) -> AsyncIterator[HttpProvider]:
    kind, path = ADAPTERS[request.param]
    settings = ProviderSettings("one", request.param, address + path, "KEY", "smollm2")
    provider = kind(settings, environ={"KEY": KEY})
    yield provider
    await provider.aclose()


async def test_a_trimmed_conversation(adapter):
    profile = Profile(max_history_messages=2, max_context_tokens=0)
    talk, client = await new_talk(lambda: adapter, window=N_CTX, limit=10, profile=profile, model="smollm2")
    ends = await take_turns(talk, client, [note(number, 8) for number in range(5)])
    assert set(ends) <= {"end_turn", "max_tokens"}
    assert client.trims()
    composed = talk.conversation.keeper.composed
    assert composed is not None
    assert talk.conversation.keeper.calibration > 0


async def test_its_overflow_is_understood(adapter):
    asked = ModelRequest("smollm2", (Segment((Row("user", note(1, 1500)),)),), (), 16)
    with pytest.raises(ProviderError) as caught:
        async with adapter.stream(asked):
            pytest.fail("it was answered")
    assert is_context_overflow(caught.value)
    assert stated_sizes(caught.value).limit == N_CTX
