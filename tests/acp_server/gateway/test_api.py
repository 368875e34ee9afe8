"""The read-only API: what each route gives of a session that lives here, and of one that is only stored."""

import pytest

from runtime.store.memory import MemoryStore
from runtime.values.profiles import Profile
from runtime.values.stored import HeadChange, SessionRecord
from tests.acp_server.gateway.looked import desk, talked
from tests.support.fakes import TIME, ask


async def test_the_list_goes_newest_first_page_by_page() -> None:
    store = MemoryStore()
    for number in range(5):
        time = f"2026-01-0{number + 1}T00:00:00.000Z"
        await store.create_session(SessionRecord(f"s{number}", "/p", time, time, f"Title {number}"))
    async with desk(store) as client:
        first = await client.get("/api/sessions", limit=3)
        rest = await client.get("/api/sessions", limit=3, cursor=first["next_cursor"])
    assert [one["session_id"] for one in first["sessions"]] == ["s4", "s3", "s2"]
    assert [one["session_id"] for one in rest["sessions"]] == ["s1", "s0"]
    assert rest["next_cursor"] is None
    assert first["sessions"][0] == {
        "session_id": "s4",
        "title": "Title 4",
        "cwd": "/p",
        "created_at": "2026-01-05T00:00:00.000Z",
        "updated_at": "2026-01-05T00:00:00.000Z",
        "open": False,
        "running": False,
        "dropped_turns": 0,
    }


async def test_a_search_looks_in_titles_and_folders() -> None:
    store = MemoryStore()
    for number, (cwd, title) in enumerate([("/a", "Fix the parser"), ("/Parsers", None), ("/a", "Else")]):
        time = f"2026-01-0{number + 1}T00:00:00.000Z"
        await store.create_session(SessionRecord(f"s{number}", cwd, time, time, title))
    async with desk(store) as client:
        both = await client.get("/api/sessions", q="PARSER")
        one = await client.get("/api/sessions", q="parser", limit=1)
        next_one = await client.get("/api/sessions", q="parser", limit=1, cursor=one["next_cursor"])
        in_folder = await client.get("/api/sessions", q="parser", cwd="/a")
    assert [found["session_id"] for found in both["sessions"]] == ["s1", "s0"]
    assert [found["session_id"] for found in one["sessions"]] == ["s1"]
    assert [found["session_id"] for found in next_one["sessions"]] == ["s0"]
    assert next_one["next_cursor"] is None or next_one["sessions"]
    assert [found["session_id"] for found in in_folder["sessions"]] == ["s0"]


async def test_one_session_says_where_its_cut_is() -> None:
    session, store = await talked(8)
    async with desk(store, session) as client:
        found = await client.get("/api/sessions/s")
    assert (found["turns"], found["first_kept_turn"], found["dropped_turns"]) == (8, 4, 3)
    assert found["trims"] == 3
    assert (found["open"], found["running"]) == (True, False)


@pytest.mark.parametrize("live", [True, False])
async def test_the_pieces_of_the_context_make_its_sum(live: bool) -> None:
    session, store = await talked(8)
    async with desk(store, *([session] if live else [])) as client:
        found = await client.get("/api/sessions/s/context")
    pieces = found["system"] + found["tools"] + found["breadcrumb"] + found["notes"]
    assert pieces + sum(turn["tokens"] for turn in found["turns"]) == found["estimated"]
    assert found["source"] == ("live" if live else "stored")
    assert [turn["turn"] for turn in found["turns"]] == [4, 5, 6, 7, 8]
    assert [turn["collapsed"] for turn in found["turns"]] == [True, True, False, False, False]
    assert [turn["leaves_next"] for turn in found["turns"]] == [True, False, False, False, False]
    assert found["free"] == found["trims_above"] - found["used"]
    assert found["tool_rows"] == sum(turn["tool_tokens"] for turn in found["turns"]) > 0


async def test_an_open_session_that_went_on_elsewhere_is_read_from_the_store() -> None:
    session, store = await talked(2)
    assert session.lease is None
    async with desk(store, session) as client:
        assert (await client.get("/api/sessions/s/context"))["source"] == "live"
        session.lease = Behind()  # type: ignore[assignment]  # its `seen` is all that is looked at
        assert (await client.get("/api/sessions/s/context"))["source"] == "stored"


class Behind:
    seen = 1


async def test_the_transcript_says_what_the_model_gets_of_each_turn_and_why() -> None:
    session, store = await talked(8)
    async with desk(store, session) as client:
        page = await client.get("/api/sessions/s/transcript")
    views = {turn["number"]: turn["view"] for turn in page["turns"]}
    assert views == {
        1: "dropped",
        2: "dropped",
        3: "dropped",
        4: "collapsed",
        5: "collapsed",
    } | dict.fromkeys((6, 7, 8), "sent")
    second = page["turns"][1]
    assert second["prompt"] == {"text": "prompt 2", "length": 8}
    assert second["dropped_by"]["reason"] == "history turn limit exceeded"
    assert second["dropped_by"]["dropped"] == [{"first": 2, "last": 2}]
    assert second["dropped_by"]["turn"] == 7
    assert [part["type"] for part in second["parts"]] == ["tool", "text"]
    assert [part["type"] for part in page["turns"][5]["parts"]] == ["trim", "tool", "text"]
    assert page["turns"][5]["parts"][0]["trim"]["dropped"] == [{"first": 1, "last": 1}]
    assert page["turns"][7]["outcome"] == "done"


async def test_a_transcript_is_read_in_both_directions() -> None:
    session, store = await talked(7)
    async with desk(store, session) as client:
        last = await client.get("/api/sessions/s/transcript", before=2**53 - 1, limit=3)
        before = await client.get("/api/sessions/s/transcript", before=last["previous_before"], limit=3)
        first = await client.get("/api/sessions/s/transcript", before=before["previous_before"], limit=3)
        on = await client.get("/api/sessions/s/transcript", after=first["next_after"], limit=2)
    assert [turn["number"] for turn in last["turns"]] == [5, 6, 7]
    assert [turn["number"] for turn in before["turns"]] == [2, 3, 4]
    assert [turn["number"] for turn in first["turns"]] == [1]
    assert (first["previous_before"], last["next_after"]) == (None, None)
    assert [turn["number"] for turn in on["turns"]] == [2, 3]


async def test_long_texts_are_cut_and_say_how_long_they_are() -> None:
    session, store = await talked(1)
    async with desk(store, session) as client:
        page = await client.get("/api/sessions/s/transcript", text_limit=10)
    tool, text = page["turns"][0]["parts"]
    assert text["text"] == {"text": "y" * 10, "length": 300}
    assert (tool["content"]["text"], tool["content"]["length"]) == ("x" * 10, 300)


async def test_notices_with_their_numbers() -> None:
    profile = Profile(max_context_tokens=1200, trim_slack_ratio=0.3)
    session, store = await talked(24, profile)
    async with desk(store, session) as client:
        found = await client.get("/api/sessions/s/trims", limit=2)
        rest = await client.get("/api/sessions/s/trims", after=found["next_after"])
        page = await client.get("/api/sessions/s/transcript", limit=100)
    trims = [*found["trims"], *rest["trims"]]
    assert len(trims) > 3
    gone = [
        number for trim in trims for one in trim["dropped"] for number in range(one["first"], one["last"] + 1)
    ]
    dropped = [turn["number"] for turn in page["turns"] if turn["view"] == "dropped"]
    assert gone == dropped == list(range(1, len(dropped) + 1))
    assert sum(trim["dropped_turns"] for trim in trims) == len(dropped)
    first = trims[0]
    assert first["tokens"]["before"] > first["tokens"]["budget"] >= first["tokens"]["after"]
    assert first["tokens"]["before_source"] in ("estimate", "calibrated")
    assert (first["reason"], first["strategy"]) == ("context token budget exceeded", "recent")


async def test_the_timeline_tells_each_request_as_it_was() -> None:
    profile = Profile(max_context_tokens=1200, trim_slack_ratio=0.3)
    session, store = await talked(12, profile)
    async with desk(store, session) as client:
        whole = await client.get("/api/sessions/s/timeline", limit=100)
        trims = await client.get("/api/sessions/s/trims", limit=100)
    points = whole["requests"]
    assert len(points) == 24
    assert [(one["turn"], one["call"]) for one in points[:3]] == [(1, 1), (1, 2), (2, 1)]
    for one in points:
        parts = one["fixed"] + one["beside"] + one["older"] + one["whole"] + one["running"]
        assert parts == one["estimated"]
        assert one["estimated"] <= one["used"] <= one["trims_above"] == 1200
    assert [trim_id for one in points for trim_id in one["trims"]] == [
        one["trim_id"] for one in trims["trims"]
    ]
    after = {trim["trim_id"]: trim["tokens"]["after"] for trim in trims["trims"]}
    for one in points:
        for trim_id in one["trims"]:
            assert one["used"] == after[trim_id]


async def test_a_timeline_in_pages_is_the_same_timeline() -> None:
    profile = Profile(max_context_tokens=1200, trim_slack_ratio=0.3)
    session, store = await talked(14, profile)
    async with desk(store, session) as client:
        whole = (await client.get("/api/sessions/s/timeline", limit=100))["requests"]
        pages, after = [], 0
        while after is not None:
            page = await client.get("/api/sessions/s/timeline", limit=3, after=after)
            pages += page["requests"]
            after = page["next_after"]
    assert pages == whole


async def test_a_session_that_grows_is_read_on_and_one_made_anew_is_read_anew() -> None:
    store = MemoryStore()
    session, _ = await talked(2, store=store)
    async with desk(store, session) as client:
        assert (await client.get("/api/sessions/s"))["turns"] == 2
        await ask(session, "one more")
        assert (await client.get("/api/sessions/s"))["turns"] == 3
        await store.delete_session("s")
        await store.create_session(SessionRecord("s", "/project", TIME, TIME))
        assert (await client.get("/api/sessions/s"))["turns"] == 0
        assert (await client.get("/api/sessions/s/transcript"))["turns"] == []
        assert (await client.get("/api/sessions/s/timeline"))["requests"] == []


@pytest.mark.parametrize(
    ("path", "query", "status", "why"),
    [
        ("/api/sessions", {"limit": "0"}, 400, "'limit'"),
        ("/api/sessions", {"limit": "x"}, 400, "'limit'"),
        ("/api/sessions", {"limit": "1.0"}, 400, "'limit'"),
        ("/api/sessions", {"limit": "201"}, 400, "'limit'"),
        ("/api/sessions", {"cursor": "s1-00"}, 400, "'cursor'"),
        ("/api/sessions", {"nope": "1"}, 400, "It takes: cwd, q, cursor, limit."),
        ("/api/sessions/s", {"x": "1"}, 400, "It takes: none."),
        ("/api/sessions/s/transcript", {"after": "-1"}, 400, "'after'"),
        ("/api/sessions/s/transcript", {"text_limit": "9999999"}, 400, "'text_limit'"),
        ("/api/sessions/none", {}, 404, "There is no such session"),
        ("/api/sessions/none/context", {}, 404, "There is no such session"),
        ("/api/sessions/none/transcript", {}, 404, "There is no such session"),
        ("/api/sessions/none/trims", {}, 404, "There is no such session"),
        ("/api/sessions/none/timeline", {}, 404, "There is no such session"),
        ("/api/openapi.json", {"x": "1"}, 400, "It takes: none."),
    ],
)
async def test_what_is_asked_wrongly(path: str, query: dict[str, str], status: int, why: str) -> None:
    _, store = await talked(1)
    async with desk(store) as client:
        problem = await client.get(path, status, **query)
    assert problem["error"]["status"] == status
    assert why in problem["error"]["message"]


async def test_a_parameter_given_twice_and_a_method_that_writes_are_refused() -> None:
    async with desk() as client:
        twice = await client.http.get("/api/sessions?limit=1&limit=2")
        written = await client.http.post("/api/sessions")
    assert (twice.status_code, "more than once" in twice.text) == (400, True)
    assert (written.status_code, set(written.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert written.json()["error"]["status"] == 405


async def test_settings_that_cannot_be_used_are_told_and_hide_no_transcript(tmp_path) -> None:
    (tmp_path / "config.toml").write_text("nonsense = 1\n")
    _, store = await talked(1)
    async with desk(store, env={"WHOLETURN_CONFIG_DIR": str(tmp_path)}) as client:
        assert "nonsense" in (await client.get("/api/sessions/s/context", 503))["error"]["message"]
        assert len((await client.get("/api/sessions/s/transcript"))["turns"]) == 1


async def test_a_damaged_state_hides_neither_the_list_nor_the_transcript() -> None:
    _, store = await talked(2)
    await store.append("s", (), head=HeadChange(state="no state"))
    async with desk(store) as client:
        assert (await client.get("/api/sessions"))["sessions"][0]["dropped_turns"] == 0
        assert [turn["view"] for turn in (await client.get("/api/sessions/s/transcript"))["turns"]] == [
            "sent"
        ] * 2
        assert len((await client.get("/api/sessions/s/context"))["turns"]) == 2
