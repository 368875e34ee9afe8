"""A session goes out as lines and comes in as the same session, here or elsewhere, or not at all."""

import io
from contextlib import aclosing

import pytest

from acp_server.programs.transcripts.lines import BadExport
from acp_server.programs.transcripts.transfer import exported, imported, lines_of
from runtime.store.memory import MemoryStore
from runtime.transcript.turn_record import PAGE
from runtime.values.stored import SessionRecord, Store, StoredEntry
from tests.support.fakes import TIME, EchoTool, ask, call, make_session, script


async def spoken() -> Store:
    """A session with tools."""
    session, _, store = await make_session(
        script({"calls": [call("one", id="c1")]}, {"text": "é"}, {"text": "b"}), tools=[EchoTool()]
    )
    for text in ("p0", "p1"):
        await ask(session, text)
    return store


async def lines(store: Store, session_id: str = "s") -> list[bytes]:
    record = await store.session(session_id)
    assert record is not None
    async with aclosing(exported(store, record)) as made:
        return [line async for line in made]


def ignore(text: str) -> None:
    raise AssertionError(text)


async def test_it_comes_in_as_it_went_out():
    store, other = await spoken(), MemoryStore()
    out = await lines(store)
    record = await imported(other, out, tell=ignore)
    assert record == await store.session("s") == await other.session("s")
    assert await other.entries("s") == await store.entries("s")
    assert await lines(other) == out


async def test_a_taken_id_gives_a_new_one_and_leaves_the_other_alone():
    told: list[str] = []
    store = await spoken()
    before = await store.entries("s")
    record = await imported(store, await lines(store), tell=told.append)
    assert record.session_id != "s"
    assert told == [f"s is taken; the session is now {record.session_id}."]
    assert await store.entries("s") == before == await store.entries(record.session_id)


async def test_another_folder():
    other = MemoryStore()
    record = await imported(other, await lines(await spoken()), cwd="/elsewhere", tell=ignore)
    assert record.cwd == "/elsewhere"


async def test_many_steps_come_in_batches():
    store, other, count = MemoryStore(), MemoryStore(), 2 * PAGE + 1
    await store.create_session(SessionRecord("s", "/project", TIME, TIME))
    step = b'{"kind":"runtime","text":"x"}'
    await store.append("s", [StoredEntry("t", f"k{n}", "runtime", step) for n in range(count)])
    await imported(other, await lines(store), tell=ignore)
    assert len(await other.entries("s", limit=count)) == count


@pytest.mark.parametrize("damage", ["cut", "torn", "wrong", "empty"])
async def test_a_bad_file_leaves_nothing_behind(damage: str):
    out = await lines(await spoken())
    bad = {
        "cut": out[:-1],
        "torn": [*out[:-1], out[-1][:20]],
        "wrong": [*out, b'{"turn":"t","key":"k","kind":"prompt","step":{}}\n'],
        "empty": [],
    }[damage]
    other = MemoryStore()
    with pytest.raises(BadExport):
        await imported(other, bad, tell=ignore)
    assert (await other.list_sessions(cwd=None, cursor=None, limit=9)).sessions == ()


def test_lines_of_a_file(monkeypatch: pytest.MonkeyPatch):
    assert list(lines_of(io.BytesIO(b"a\n\n  \nb"))) == [b"a\n", b"b"]
    monkeypatch.setattr("acp_server.programs.transcripts.transfer.LONGEST_LINE", 4)
    with pytest.raises(BadExport, match="Line 2"):
        list(lines_of(io.BytesIO(b"abc\nabcdefg\n")))


async def test_a_key_that_stands_twice_is_told_and_nothing_stays():
    other = MemoryStore()
    head, *steps = await lines(await spoken())
    for twice in ([steps[0], *steps[:-1]], [*steps[:-1], steps[0]]):
        with pytest.raises(BadExport, match="more than once"):
            await imported(other, [head, *twice], tell=ignore)
        assert await other.session("s") is None


async def damaged(store: Store, kind: str) -> tuple[Store, str]:
    """A copy in which the last step of a kind is damaged, and that step's key."""
    record, entries = await store.session("s"), await store.entries("s")
    assert record is not None
    at = max(index for index, entry in enumerate(entries) if entry.kind == kind)
    entries[at] = entries[at]._replace(payload=b"\0" + entries[at].payload)
    copy = MemoryStore()
    await copy.create_session(record)
    await copy.append("s", entries)
    return copy, entries[at].key


@pytest.mark.parametrize("kind", ["prompt", "reply", "tool", "end", "setup"])
async def test_one_damaged_step_costs_that_step_alone(kind: str):
    store, key = await damaged(await spoken(), kind)
    told: list[StoredEntry] = []
    record = await store.session("s")
    assert record is not None
    async with aclosing(exported(store, record, told.append)) as made:
        out = [line async for line in made]
    assert [entry.key for entry in told] == [key]
    other = MemoryStore()
    await imported(other, out, tell=ignore)
    keys = [entry.key for entry in await store.entries("s")]
    assert [entry.key for entry in await other.entries("s")] == [one for one in keys if one != key]
