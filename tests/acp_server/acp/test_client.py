"""The client as the core sees it, over a wire that a test answers: order, whole units, files or the disk."""

from pathlib import Path

import pytest
import trio
import trio.testing

from acp_server.acp.client import READ_TIME_LIMIT, AcpClient
from acp_server.acp.client_options import WireOptions
from acp_server.wire.errors import ClientCallError
from runtime.ports import Client
from runtime.values.events import AgentText, HistoryTrimmed, ToolCallChanged, UsageChanged
from tests.support.acp_schema import check_params, update_kind

FILE = Path("/project/a.py")
TRIM = HistoryTrimmed(2, 1, 3, "context token budget exceeded", "recent", "t-1", used=5, size=100)


class RecordingWire:
    """A connection without a peer: keeps what is sent, answers calls with `answer` or never (None)."""

    def __init__(self, answer: object = None, *, room: int | None = None) -> None:
        self.sent: list[tuple[str, dict[str, object]]] = []
        self.calls: list[tuple[str, dict[str, object]]] = []
        self.room = trio.Semaphore(room) if room is not None else None
        self._answer = answer

    async def notify(self, method: str, params: dict[str, object]) -> None:
        if self.room is not None:
            await self.room.acquire()
        self.sent.append((method, params))

    def notify_nowait(self, method: str, params: dict[str, object]) -> None:
        self.sent.append((method, params))

    async def call(self, method: str, params: dict[str, object]) -> object:
        self.calls.append((method, params))
        if isinstance(self._answer, Exception):
            raise self._answer
        if self._answer is None:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        return self._answer

    @property
    def kinds(self) -> list[str | None]:
        return [update_kind(method, params) for method, params in self.sent]


def reader(answer: object = None) -> tuple[AcpClient, RecordingWire]:
    wire = RecordingWire(answer)
    return AcpClient(wire, WireOptions(read_text_file=True)), wire


async def test_events_go_out_in_the_order_in_which_they_came():
    wire = RecordingWire()
    client: Client = AcpClient(wire, WireOptions())
    for event in (AgentText("m", "a"), TRIM, ToolCallChanged("c", "completed"), UsageChanged(1, 2)):
        await client.emit("S", event)
    assert wire.kinds == [
        "agent_message_chunk",
        "history_trimmed",
        "usage_update",
        "agent_thought_chunk",
        "tool_call_update",
        "usage_update",
    ]
    assert all(params["sessionId"] == "S" for _, params in wire.sent)


async def test_nothing_comes_between_the_messages_of_a_trim():
    wire = RecordingWire(room=2)
    client = AcpClient(wire, WireOptions())
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.emit, "S", TRIM)
            nursery.start_soon(client.emit, "S", AgentText("m", "a"))
    unit = ["history_trimmed", "usage_update", "agent_thought_chunk"]
    assert wire.kinds in (["agent_message_chunk", *unit], [*unit, "agent_message_chunk"])


async def test_a_trim_that_is_cancelled_before_it_began_is_not_told_by_halves():
    wire = RecordingWire(room=0)
    client = AcpClient(wire, WireOptions())
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.emit, "S", TRIM)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert wire.sent == []


async def test_a_long_text_that_waits_for_the_reader_can_be_cancelled():
    wire = RecordingWire(room=1)
    client = AcpClient(wire, WireOptions())
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.emit, "S", AgentText("m", "x" * 3_000_000))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert wire.kinds == ["agent_message_chunk"]


# ---------------------------------------------------------------- files


async def test_a_file_comes_from_the_editor_where_it_offers_files():
    client, wire = reader({"content": "unsaved\r\n", "_meta": {}})
    assert await client.read_text_file("S", FILE) == "unsaved\r\n"
    ((method, params),) = wire.calls
    assert (method, params) == ("fs/read_text_file", {"sessionId": "S", "path": str(FILE)})
    check_params(method, params)


async def test_an_empty_file_is_not_a_missing_one():
    client, _ = reader({"content": ""})
    assert await client.read_text_file("S", FILE) == ""


async def test_a_client_without_files_is_never_asked():
    wire = RecordingWire({"content": "x"})
    assert await AcpClient(wire, WireOptions()).read_text_file("S", FILE) is None
    assert wire.calls == []


@pytest.mark.parametrize(
    "answer",
    [
        ClientCallError(-32601, "Method not found"),
        ClientCallError(-32002, "no such file"),
        {},
        {"content": None},
        {"content": 3},
        {"content": ["x"]},
        [],
        "text",
        0,
    ],
    ids=repr,
)
async def test_whatever_else_comes_means_the_disk(answer):
    client, wire = reader(answer)
    assert await client.read_text_file("S", FILE) is None
    assert len(wire.calls) == 1


async def test_a_client_that_never_answers_does_not_hold_up_the_tool(autojump_clock):
    client, _ = reader()
    before = trio.current_time()
    assert await client.read_text_file("S", FILE) is None
    assert trio.current_time() - before == READ_TIME_LIMIT


async def test_a_cancelled_turn_ends_the_wait_for_a_file(autojump_clock):
    client, _ = reader()
    with trio.move_on_after(1) as turn:
        await client.read_text_file("S", FILE)
    assert turn.cancelled_caught


async def test_a_bug_of_ours_is_not_taken_for_a_missing_file():
    client, _ = reader(KeyError("x"))
    with pytest.raises(KeyError):
        await client.read_text_file("S", FILE)
