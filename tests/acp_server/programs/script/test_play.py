"""Plays against a real child process: what passes."""

import json
import os

import trio

from tests.acp_server.programs.script.support import CHUNK, COMMAND, DONE, OPEN, USAGE, passes, prompt, run


def chunk(text):
    return {"expect": {"params": {"update": {"content": {"text": text}}}}}


async def test_handshake_counts_its_steps():
    outcome = await passes()
    assert len(outcome.script.steps) == 4
    assert outcome.seconds > 0


async def test_ignored_kinds_are_taken_out():
    await passes({"ignore": USAGE}, prompt("words a b"), chunk("a "), chunk("b "), DONE, {"text": "a b "})


async def test_ignore_can_be_ended():
    await passes(
        {"ignore": USAGE}, prompt("words a"), chunk("a "), DONE, {"ignore": None},
        prompt("words b"), chunk("b "), {"expect": USAGE}, DONE,
    )  # fmt: skip


async def test_until_skips_and_collects():
    await passes(prompt("words a b c"), {"until": DONE["expect"]}, {"text": {"$contains": "b c"}})


async def test_text_is_of_the_last_prompt_and_taken_once():
    await passes(
        prompt("words old"), {"until": DONE["expect"]},
        prompt("words new"), {"until": DONE["expect"]},
        {"text": "new ", "session": "$SESSION"}, {"text": ""},
        prompt("words x"), {"until": DONE["expect"]}, {"text": "", "session": "other"},
    )  # fmt: skip


async def test_any_order():
    call = {"params": {"update": {"sessionUpdate": "tool_call"}}}

    def titled(title):
        return {"params": {"update": {**call["params"]["update"], "title": title}}}

    await passes(
        prompt("shuffled b a c"),
        {
            "any_order": [
                titled("a"),
                {"expect": titled("b")},
                {"optional": titled("z")},
                {"optional": titled("c")},
            ]
        },
        {"optional": titled("c")},
        DONE,
    )


async def test_optional_may_come_or_stay_away():
    for text in ("words a", "silence"):
        await passes(
            {"optional": CHUNK}, {"optional": USAGE},
            prompt(text if text != "silence" else "words"), DONE,
        )  # fmt: skip


async def test_what_is_expected_wins_over_what_is_optional():
    await passes(prompt("words a"), {"optional": CHUNK}, {"expect": CHUNK}, {"expect": USAGE}, DONE)


async def test_request_is_answered_with_what_was_captured():
    await passes(
        prompt("read /a/b"),
        {
            "expect": {"method": "fs/read_text_file", "id": "$string", "params": {"path": "$capture:PATH"}},
            "answer": {"content": "text of ${PATH}"},
        },
        {"until": DONE["expect"]},
        {"text": "text of /a/b"},
    )


async def test_request_is_answered_with_an_error():
    request = {"method": "fs/read_text_file"}
    await passes(
        prompt("read x"), {"expect": request, "answer_error": {"code": -32002, "message": "no"}},
        {"until": DONE["expect"]}, {"text": "error -32002"},
    )  # fmt: skip


async def test_requests_are_answered_in_any_order_and_by_the_way():
    read = {"method": "fs/read_text_file"}
    allow = {"method": "session/request_permission"}
    answers = '{"1": {"content": "c"}, "2": {"outcome": {"outcome": "cancelled"}}}'
    cancelled = {"outcome": {"outcome": "cancelled"}}
    await passes(
        prompt("both"),
        {"any_order": [{"expect": allow, "answer": cancelled}, {"expect": read, "answer": {"content": "c"}}]},
        {"until": DONE["expect"]},
        {"text": answers},
    )
    await passes(
        {"ignore": read, "answer": {"content": "c"}},
        {"ignore": allow, "answer": cancelled},
        prompt("both"),
        {"until": DONE["expect"]},
        {"text": answers},
    )


async def test_raw_and_hex_bytes():
    await passes(
        {"raw": '{"id":9,"method":'}, {"raw": '"nope"}\n'},
        {"expect": {"id": 9, "error": {"code": -32601}}},
        {"hex": "ff0a"}, {"expect": {"$exact": {"jsonrpc": "2.0", "id": None, "error": "$object"}}},
        {"raw": {"$repeat": ["x", 100_000]}}, {"raw": "\n"}, {"expect": {"id": None}},
    )  # fmt: skip


async def test_none_leaves_other_frames_in_their_place():
    await passes(
        prompt("words a"), {"none": {"id": 4}, "for": 0.1}, {"expect": CHUNK}, {"expect": USAGE}, DONE,
        {"none": "$any", "for": 0.05},
    )  # fmt: skip


async def test_none_does_not_see_what_is_ignored():
    await passes(
        {"ignore": CHUNK}, {"ignore": USAGE}, {"ignore": DONE["expect"]},
        prompt("words a"), {"none": "$any", "for": 0.2},
    )  # fmt: skip


async def test_end_by_closing_and_by_signals():
    await passes({"close": True}, {"exit": 0})
    await passes({"kill": "KILL"}, {"exit": -9})
    await passes({"kill": "TERM"}, {"exit": {"$lt": 0}})
    await passes(prompt("die 7"), {"exit": 7}, {"none": "$any", "for": 5})


async def test_restart_keeps_variables_and_forgets_frames():
    await passes(
        prompt("words a"), {"expect": CHUNK}, {"kill": "KILL"}, {"restart": True},
        {"send": {"id": "$SESSION", "method": "nope"}}, {"expect": {"id": "s-1", "error": "$object"}},
        {"text": ""},
    )  # fmt: skip


async def test_half_a_line_of_a_killed_agent_is_no_fault():
    await passes(prompt("silent"), {"raw": "x"}, {"kill": "KILL"}, {"restart": True})


async def test_environment_folder_and_files(tmp_path):
    await passes(
        {"write": "deep/f.txt", "content": "in ${CWD}"},
        prompt("environment COLOUR"),
        {"until": DONE["expect"]},
        {"text": f"blue {os.getcwd()}"},
        {"env": {"COLOUR": "red ${FIXTURE_DIR}"}},
        {"restart": True},
        *OPEN,
        prompt("environment COLOUR"),
        {"until": DONE["expect"]},
        {"text": f"red /fixtures {os.getcwd()}"},
        cwd=tmp_path,
        env={"COLOUR": "blue"},
    )
    assert (tmp_path / "deep/f.txt").read_text() == f"in {tmp_path}"


async def test_folder_of_its_own_is_new_and_removed():
    lines: list[str] = []
    await passes({"write": "f"}, trace=lines.append)
    sent = next(line for line in lines if "session/new" in line)
    folder = json.loads(sent.removeprefix("-> "))["params"]["cwd"]
    assert "/script-" in folder
    assert not os.access(folder, os.F_OK)


async def test_frames_over_64_mib_in_both_directions():
    size = 65 * 1024 * 1024
    await passes(
        prompt(f"large {size}"), {"expect": CHUNK}, DONE, {"text": {"$len": size}},
        {"send": {"id": 8, "method": "nope", "params": {"x": {"$repeat": ["y", size]}}}},
        {"expect": {"id": 8}},
        timeout=60.0,
    )  # fmt: skip


async def test_lone_surrogate_is_sent_as_an_escape():
    lines: list[str] = []
    await passes(
        {"send": {"id": "\ud800", "method": "nope"}}, {"expect": {"id": "\ud800"}}, trace=lines.append
    )
    assert '-> {"jsonrpc":"2.0","id":"\\ud800","method":"nope"}' in lines


async def test_steps_before_the_first_message_start_nothing():
    outcome = await run({"set": {"A": 1}}, {"note": "n"}, {"write": "f"}, command=("no-such-program",))
    assert outcome.failure is None


async def test_traffic_is_traced():
    lines: list[str] = []
    await passes({"note": "hello"}, trace=lines.append)
    assert lines[0] == "-- talk.jsonl:1"
    assert any(line.startswith('-> {"jsonrpc":"2.0","id":1,"method":"initialize"') for line in lines)
    assert any(line.startswith('<- {"jsonrpc": "2.0", "id": 1, "result"') for line in lines)
    assert "-- hello" in lines


async def test_children_that_the_agent_left_behind_are_gone(tmp_path):
    """The child holds the writing end of a FIFO: its reader sees the end when the child is no more."""
    os.mkfifo(tmp_path / "held")
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                lambda: passes(prompt(f"leave {tmp_path}/held"), DONE, {"close": True}, {"exit": 0})
            )
            held = await trio.to_thread.run_sync(open, tmp_path / "held", "rb", abandon_on_cancel=True)
        assert await trio.to_thread.run_sync(held.read, abandon_on_cancel=True) == b""
        held.close()


async def test_cancel_ends_the_agent(tmp_path):
    os.mkfifo(tmp_path / "held")
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            steps = (*OPEN, prompt(f"leave {tmp_path}/held"), DONE, {"none": "$any", "for": 600})
            nursery.start_soon(lambda: run(*steps, grace=0.2))
            held = await trio.to_thread.run_sync(open, tmp_path / "held", "rb", abandon_on_cancel=True)
            nursery.cancel_scope.cancel()
        assert await trio.to_thread.run_sync(held.read, abandon_on_cancel=True) == b""
        held.close()


async def test_command_with_arguments():
    outcome = await run({"exit": 3}, command=(*COMMAND, "--fault", "x"))
    assert outcome.failure is None
    assert outcome.stderr == "no licence\n"
