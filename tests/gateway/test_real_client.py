"""A client of another hand over the gateway: the Python SDK, its pipes carried over the WebSocket."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from mock_text import prompt_text, prose, reply_text
from tests.clients.rigs import converse, problems
from tests.gateway.process import running
from tests.process.homes import Home

TURNS = 12
REPLY_CHARS = 600
BRIDGE = Path(__file__).with_name("bridge.py")


async def test_turns_with_tools_and_trims(home: Home, mock_model: Callable[..., str]):
    url = mock_model(reply_chars=REPLY_CHARS, chunks=6, tool_loop=1, tool_path="notes.txt")
    home.model_at(f"{url}/v1", context_window=16000)
    home.configure(profile="max_context_tokens = 4000")
    (home.work / "notes.txt").write_text(prose(1200, 1))
    async with running(home) as it:
        talk = await trio.to_thread.run_sync(
            partial(
                converse,
                "python",
                [sys.executable, str(BRIDGE), it.url, it.token],
                home.root,
                [prompt_text(turn, 200) for turn in range(1, TURNS + 1)],
                home.env,
            )
        )
    replies = [reply_text(turn, REPLY_CHARS) for turn in range(1, TURNS + 1)]
    assert problems(talk, replies, trims=1) == []
    assert talk.summary["asked"].get("fs/read_text_file", 0) >= TURNS
