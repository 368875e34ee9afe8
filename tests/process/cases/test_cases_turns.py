"""Trouble that people had with turns, each under the number of its report: stops, crashes, pairs, order."""

import trio

from runtime.values.texts import NOTES
from tests.process.homes import Home, call, calls, says
from tests.process.models import answers, asks, hangs, results_of, rows_of
from tests.support.fakes_llm import fake_server
from tests.support.wire import never
from tests.support.wire_order import BETWEEN_TURNS, Json
from tests.support.wire_talk import READS_FILES, kinds, of_kind, replayed_turns, text_of

EDITOR = {"fs/read_text_file": never}
"""An editor that lends its buffers and then does not answer: a tool that hangs."""
STOPPED = "[cancelled] stopped by the user before it finished"
NOT_RUN = "[cancelled] not run: stopped by the user"
INTERRUPTED = "[interrupted: no result was recorded]"


async def test_b018_a_cancel_while_a_tool_runs_leaves_whole_pairs(home: Home) -> None:
    async with fake_server(asks(("z1", "read_file", {"path": "slow"})), answers("4")) as server:
        home.model_at(server.base_url)
        async with home.talk(READS_FILES, handlers=EDITOR) as talk:
            asked = await talk.ask("Run the slow script.")
            await talk.see("tool_call_update", status="in_progress")
            await talk.cancel()
            turn = await talk.end_of(asked)
            assert (turn.stop, turn.calls[0]["status"]) == ("cancelled", "failed")
            assert (await talk.turn("Never mind. What is 2+2?")).stop == "end_turn"
        rows = rows_of(server)
        assert results_of(rows) == {"z1": STOPPED}
        assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "user"]
        assert rows[3]["content"] == NOTES["cancelled"]


async def test_b020_a_cancel_before_calls_have_started_says_that_they_were_not_run(home: Home) -> None:
    """More calls than run side by side: the last ones have not begun when the cancel comes."""
    wanted = [(f"w{number}", "read_file", {"path": f"{number}.txt"}) for number in range(12)]
    async with fake_server(asks(*wanted), answers("ok")) as server:
        home.model_at(server.base_url)
        async with home.talk(READS_FILES, handlers=EDITOR) as talk:
            asked = await talk.ask("Build and test.")
            await talk.see("tool_call_update", status="in_progress")
            await talk.cancel()
            assert (await talk.end_of(asked)).stop == "cancelled"
            assert (await talk.turn("Only build.")).stop == "end_turn"
        results = results_of(rows_of(server))
        assert list(results) == [ident for ident, _, _ in wanted]
        assert set(results.values()) <= {STOPPED, NOT_RUN}
        assert [results["w10"], results["w11"]] == [NOT_RUN, NOT_RUN]


async def nobody(params: Json) -> object:
    await trio.lowlevel.checkpoint()
    return {"outcome": {"outcome": "selected", "optionId": "of no option"}}


async def test_b022_a_call_that_fails_has_its_row_beside_the_one_that_works(home: Home) -> None:
    (home.work / "app.py").write_text("print(1)")
    used = asks(("g1", "read_file", {"path": "app.py"}), ("b1", "read_file", {"path": "../../etc/passwd"}))
    async with fake_server(used, answers("One worked.")) as server:
        home.model_at(server.base_url)
        # Outside the folder of the session a read needs permission, which nobody gives.
        async with home.talk(handlers={"session/request_permission": nobody}) as talk:
            turn = await talk.turn("Use both.")
            assert turn.stop == "end_turn"
            assert [shown["status"] for shown in turn.calls] == ["completed", "failed"]
        results = results_of(rows_of(server))
        assert results["g1"] == "1|print(1)"
        assert results["b1"] == turn.calls[1]["content"][0]["content"]["text"] != ""


async def test_b023_both_results_of_parallel_calls_are_stored(home: Home) -> None:
    for name in ("a", "b"):
        (home.work / name).write_text(f"flow {name}")
    used = asks(("call_a", "read_file", {"path": "a"}), ("call_b", "read_file", {"path": "b"}))
    async with fake_server(used, answers("A and B"), answers("again")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            await talk.turn("Run both flows.")
        async with home.resumed(talk):
            assert (await talk.turn("And?")).stop == "end_turn"
        assert results_of(rows_of(server)) == {"call_a": "1|flow a", "call_b": "1|flow b"}


async def test_b024_a_kill_while_tools_run_leaves_calls_that_are_closed(home: Home) -> None:
    (home.work / "quick").mkdir()
    used = asks(("k1", "read_file", {"path": "slow"}), ("k2", "list_dir", {"path": "quick"}))
    async with fake_server(used, answers("continuing")) as server:
        home.model_at(server.base_url)
        async with home.talk(READS_FILES, handlers=EDITOR) as talk:
            await talk.ask("Wait for both.")
            await talk.see("tool_call_update", status="completed")
            await talk.agent.kill()
        async with home.resumed(talk) as replay:
            shown = of_kind(replay, "tool_call")
            assert [call["status"] for call in shown] == ["failed", "completed"]
            assert "may or may not have run" in shown[0]["content"][0]["content"]["text"]
            assert (await talk.turn("continue")).stop == "end_turn"
        rows = rows_of(server)
        results = results_of(rows)
        assert results["k1"].startswith(INTERRUPTED)
        assert results["k2"] == shown[1]["content"][0]["content"]["text"]
        assert "interrupted" in rows[-2]["content"]


async def test_b088_no_chunk_comes_behind_the_response_however_slow_the_client_reads(home: Home) -> None:
    """The order itself is checked on every connection; here the client reads late."""
    home.script(says(["Hel", "lo ", "wor", "ld, this is the end."]))
    async with home.talk() as talk:
        await talk.see("available_commands_update")
        talk.agent.inbox.pause()
        asked = await talk.ask("hi")
        talk.agent.inbox.unpause()
        assert (await talk.end_of(asked)).text == "Hello world, this is the end."


async def test_b089_nothing_is_said_as_the_agent_outside_a_turn(home: Home) -> None:
    home.configure(profile="max_history_messages = 1")
    async with home.talk() as talk:
        await talk.turn("one")
        await talk.turn("two")
        since = len(talk.agent.frames)
        assert await talk.agent.close() == 0
        assert set(kinds(talk.updates(since))) <= BETWEEN_TURNS


async def test_b097_the_end_of_input_in_a_turn_still_records_it(home: Home) -> None:
    """With the output pipe broken as well."""
    async with fake_server(hangs("half an ans"), answers("ok")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            await talk.ask("go")
            await talk.see("agent_message_chunk")
            assert talk.agent.process.stdout is not None
            await talk.agent.process.stdout.aclose()
            assert await talk.agent.close() == 0
        async with home.resumed(talk) as replay:
            assert text_of(replay) == "half an ans"
            await talk.turn("go on")
        assert rows_of(server)[1]["content"].startswith("half an ans\n\n[this turn was ")


async def test_b077_a_replay_shows_calls_as_they_were_live(home: Home) -> None:
    (home.work / "README.md").write_text("hello")
    home.script(
        calls(
            call("read_file", path="README.md", line=1, limit=1),
            call("search_text", pattern="hello"),
            {"name": "no_such_tool", "arguments": {"path": "a.py"}},
            {"name": "read_file", "arguments": "{broken"},
            text="Looking.",
        ),
        says("Done."),
    )
    async with home.talk() as talk:
        turn = await talk.turn("go")
    async with home.resumed(talk) as replay:
        again = replayed_turns(replay)[0].calls
        assert len(again) == 4
        for shown, live in zip(again, turn.calls, strict=True):
            assert shown == {**live, "sessionUpdate": "tool_call"}
