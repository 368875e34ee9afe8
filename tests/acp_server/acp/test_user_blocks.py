"""A stored prompt's blocks on their way back to a client: whole if it can take them."""

import pytest

from acp_server.acp.size_limits import sendable_blocks

GOOD = [
    {"type": "text", "text": ""},
    {"type": "image", "data": "AA==", "mimeType": "image/png"},
    {"type": "resource_link", "name": "a", "uri": "file:///a"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
    {"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}},
]
BAD = [
    {},
    {"type": 5},
    {"type": "hologram"},
    {"type": "text"},
    {"type": "text", "text": None},
    {"type": "image", "data": "AA=="},
    {"type": "resource", "resource": None},
    {"type": "resource", "resource": {"text": "x"}},
    {"type": "resource", "resource": {"uri": "file:///a"}},
]


@pytest.mark.parametrize("block", GOOD)
def test_a_block_is_sent_as_it_is(block: dict[str, object]) -> None:
    assert sendable_blocks(block) == [block]


@pytest.mark.parametrize("block", BAD)
def test_what_is_no_block_is_named(block: dict[str, object]) -> None:
    assert [shown["type"] for shown in sendable_blocks(block)] == ["text"]
