"""Searching a transcript: every store finds the same, in the same order. Knows the port only."""

import json

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.values.stored import Store, StoredEntry
from tests.contracts.test_store_contract import ALL, STORES, marked, record


@pytest.fixture(params=ALL)
async def store(request, tmp_path):
    """Each store in turn, with one session."""
    made = STORES[request.param](tmp_path)
    await made.create_session(record(1))
    yield made
    await made.aclose()


def step(kind: str, key: str, turn_id: str = "t1", **fields: object) -> StoredEntry:
    """An entry as a session records it."""
    return StoredEntry(turn_id, key, kind, json.dumps({"kind": kind, **fields}).encode())


async def say(store: Store, *texts: str, session_id: str = "s1") -> None:
    """A turn for each text, the prompt being the text."""
    for number, text in enumerate(texts):
        turn = f"t{number}"
        await store.append(session_id, [step("prompt", f"turn:{turn}:prompt", turn, text=text)])


async def found(store: Store, query: str, limit: int = 10, **more: str) -> list[str]:
    """The turns of the hits, best first."""
    return [hit.turn_id for hit in await store.search("s1", query, limit=limit, **more)]


async def test_a_hit_names_its_entry_and_shows_the_place(store):
    long = "filler words here. " * 200
    await store.append(
        "s1",
        [
            step("prompt", "turn:t1:prompt", text="Where is the port set?"),
            step("reply", "turn:t1:iter:0", text=f"{long} It is Port 5432,\n\tin config.toml. {long}"),
        ],
    )
    [hit] = await store.search("s1", "5432", limit=5)
    assert hit[:4] == ("t1", "turn:t1:iter:0", "reply", 2)
    assert "It is Port 5432, in config.toml." in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) <= 302


async def test_prompts_replies_results_and_last_words_are_found_and_nothing_else(store):
    texts = {
        "prompt": {"text": "needle"},
        "reply": {"text": "needle", "thought": "secretly"},
        "tool": {"title": "Read haystack.txt", "text": "a needle"},
        "end": {"told": "needle", "outcome": "error"},
        "partial": {"text": "needle"},
        "trim": {"reason": "needle"},
        "later-version": {"text": "needle"},
    }
    await store.append("s1", [step(kind, kind, **fields) for kind, fields in texts.items()])
    kinds = [hit.kind for hit in await store.search("s1", "needle", limit=10)]
    assert kinds == ["end", "tool", "reply", "prompt"]
    assert [hit.kind for hit in await store.search("s1", "haystack", limit=10)] == ["tool"]
    assert await store.search("s1", "secretly", limit=10) == []


async def test_rare_words_count_more_and_of_equals_the_newest_is_first(store):
    await say(store, "the port of the database", "the weather", "the harbour", "the database", "the end")
    assert await found(store, "what is the port of the database") == ["t0", "t3", "t4", "t2", "t1"]
    assert await found(store, "the database", limit=2) == ["t3", "t0"]


@pytest.mark.parametrize(
    ("query", "turns"),
    [
        ("migration", ["t1", "t0"]),
        ("MIGRAT", ["t1", "t0"]),
        ("igration", []),
        ("read_file", ["t2"]),
        ("read-file", ["t2"]),
        ("file_read", []),
        ("cafe", ["t3"]),
        ("CAFÉ", ["t3"]),
        ("straße", ["t4"]),
        ("of", []),
        ("42", ["t5"]),
        ("4", []),
    ],
)
async def test_words_are_found_without_case_and_accents_and_from_their_beginning(store, query, turns):
    await say(
        store, "One Migration", "two migrations", "call read_file now", "Le Café", "Strasse", "offer 42"
    )
    assert await found(store, query) == turns


@pytest.mark.parametrize(
    ("query", "turns"),
    [
        ("数据库", ["t0"]),
        ("数据", ["t1", "t0"]),
        ("库", ["t0"]),
        ("端口", ["t0"]),
        ("数据库的端口是什么", ["t0", "t1"]),
        ("カフェ", ["t2"]),
        ("設定", ["t2"]),
        ("데이터베이스", ["t3"]),
        ("ฐานข้อมูล", ["t4"]),
        ("port5432端口", ["t0"]),
    ],
)
async def test_scripts_without_spaces_are_found(store, query, turns):
    await say(
        store,
        "数据库的端口是5432",
        "我们的数据很多",
        "カフェの設定を変える",
        "데이터베이스를 바꾸다",
        "ใช้ฐานข้อมูลใหม่",
    )
    assert (await found(store, query))[: len(turns)] == turns


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        '"',
        "'",
        "*",
        "(",
        "a AND",
        "NOT",
        "NEAR(a b)",
        "words:x",
        "-x",
        "^",
        "{a}",
        "a OR",
        "\0",
        "✓",
        "%",
        ";--",
    ],
)
async def test_no_sign_has_a_meaning(store, query):
    await say(store, "or near and not words")
    for text in (query, f"{query} near", f'near" {query}'):
        assert await found(store, text) in ([], ["t0"])
    assert await found(store, f"{query} near") == ["t0"]


async def test_only_what_came_before_a_turn(store):
    await say(store, "apple one", "apple two", "apple three")
    assert await found(store, "apple", before_turn="t2") == ["t1", "t0"]
    assert await found(store, "apple", before_turn="t0") == []
    assert await found(store, "apple", before_turn="unknown") == ["t2", "t1", "t0"]


async def test_limits_and_unknown_sessions(store):
    await say(store, "apple", "apple")
    assert await found(store, "apple", limit=1) == ["t1"]
    assert await found(store, "apple", limit=0) == []
    assert await store.search("nobody", "apple", limit=5) == []


async def test_what_comes_later_is_found_too_and_each_session_has_its_own(store):
    await store.create_session(record(2))
    await say(store, "apple")
    await say(store, "apple pie", "apple cake", session_id="s2")
    assert await found(store, "apple") == ["t0"]
    await store.append("s1", [step("reply", "later", "t9", text="more apples")])
    assert await found(store, "apple") == ["t9", "t0"]
    assert len(await store.search("s2", "apple", limit=9)) == 2


async def test_unreadable_entries_are_passed_over(store):
    broken = [
        StoredEntry("t", f"k{n}", "reply", payload) for n, payload in enumerate([b"\xff", b"[1]", b"{"])
    ]
    odd = step("reply", "odd", text={"no": "text"})
    await store.append("s1", [*broken, odd, step("reply", "good", text="apple")])
    assert [hit.key for hit in await store.search("s1", "apple", limit=5)] == ["good"]


WORDS = st.sampled_from(
    ["apple", "Apples", "read_file", "café", "数据库", "数据", "the", "x1", "…", '"', "한글은"]
)


@pytest.mark.parametrize("name", marked(("sqlite", "postgres")))
@settings(max_examples=25)
@given(texts=st.lists(st.lists(WORDS, max_size=6), max_size=12), query=st.lists(WORDS, max_size=4))
def test_an_index_finds_what_reading_everything_finds(name, texts, query, tmp_path_factory):
    async def ask(name: str) -> list[object]:
        store = STORES[name](tmp_path_factory.mktemp("search"))
        await store.create_session(record(1))
        await say(store, *(" ".join(words) for words in texts))
        hits = await store.search("s1", " ".join(query), limit=5)
        before = await store.search("s1", " ".join(query), limit=5, before_turn="t3")
        await store.aclose()
        return [hits, before]

    assert trio.run(ask, name) == trio.run(ask, "memory")
