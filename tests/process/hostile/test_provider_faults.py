"""A model that is down, slow, refuses or breaks off: told as text and as an error; the talk goes on."""

import socket
from dataclasses import dataclass

from tests.process.homes import Home, call, calls, says
from tests.process.models import answers, hangs, rows_of
from tests.support.fakes_llm import fake_server
from tests.support.wire_order import Json
from tests.support.wire_talk import Turn, text_of


@dataclass(frozen=True)
class Fault:
    """One way to fail. reply: what the script says. told: words of the sentence."""

    name: str
    reply: Json
    code: int
    kind: str
    retryable: bool
    told: str
    partial: str = ""


FAULTS = [
    Fault(
        "unreachable",
        {"error": {"kind": "unreachable"}, "repeat": 3},
        -32603,
        "unreachable",
        True,
        "cannot be reached",
    ),
    Fault("timeout", {"error": {"kind": "timeout"}}, -32603, "timeout", True, "too long"),
    Fault("401", {"error": {"status": 401}}, -32000, "auth", False, "key"),
    Fault("403", {"error": {"status": 403}}, -32000, "auth", False, "key"),
    Fault("404", {"error": {"status": 404}}, -32603, "not_found", False, "model"),
    Fault("429", {"error": {"status": 429, "retry_after": 60}}, -32603, "rate_limit", True, "60 s"),
    Fault("500", {"error": {"status": 500}, "repeat": 3}, -32603, "server_error", True, "failed"),
    Fault("503", {"error": {"status": 503}, "repeat": 3}, -32603, "overloaded", True, "overloaded"),
    Fault("400", {"error": {"status": 400}}, -32603, "bad_request", False, "refused"),
    Fault("drop", says("half an ans", drop=True), -32603, "stream_dropped", True, "broke", "half an ans"),
    Fault(
        "in stream",
        says(["half ", "an ans"], error={"status": 500}),
        -32603,
        "server_error",
        True,
        "failed",
        "half an ans",
    ),
]


def check_failed(turn: Turn, fault: Fault) -> None:
    """The sentence stands in the error and, as a message of its own, at the end of the answer."""
    assert turn.error is not None
    assert turn.error.code == fault.code
    assert turn.error.data == {"kind": fault.kind, "retryable": fault.retryable}
    assert fault.told in turn.error.message
    assert turn.text == fault.partial + turn.error.message
    ids = {update["messageId"] for update in turn.updates if "messageId" in update}
    waits = {name for name in ids if name.startswith("notice-")}
    assert len(waits) == (2 if "repeat" in fault.reply else 0)
    messages = ids - waits
    assert len(messages) == (2 if fault.partial else 1)


async def test_each_fault_is_told_partial_text_is_kept_and_the_next_prompt_works(home: Home) -> None:
    """And a load shows the same texts again, with what the model itself sees of them left consistent."""
    home.script(*[{**fault.reply, "when": f"<{fault.name}>"} for fault in FAULTS], echo="yes")
    async with home.talk() as talk:
        shown = []
        for fault in FAULTS:
            turn = await talk.turn(f"<{fault.name}>")
            check_failed(turn, fault)
            shown.append(turn.text)
            assert (await talk.turn("and now?")).text == "yes"
    async with home.resumed(talk) as replay:
        assert text_of(replay) == "".join(f"{text}yes" for text in shown)
        assert (await talk.turn("still there?")).text == "yes"


async def test_a_fault_after_tools_keeps_their_results(home: Home) -> None:
    """The next prompt goes on from there: nothing that was found out is asked for again."""
    (home.work / "a.txt").write_text("seven")
    home.script(calls(call("read_file", path="a.txt")), {"error": {"status": 500}, "repeat": 3}, echo="yes")
    async with home.talk() as talk:
        turn = await talk.turn("read it")
        assert turn.error is not None
        assert turn.calls[0]["status"] == "completed"
        assert (await talk.turn("and now?")).text == "yes"


async def test_a_script_that_is_used_up_is_named(home: Home) -> None:
    home.script(says("once"))
    async with home.talk() as talk:
        await talk.turn("one")
        turn = await talk.turn("two")
        assert turn.error is not None
        assert "no reply left" in turn.text


async def test_no_server_there(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    home.model_at(address)
    async with home.talk() as talk:
        turn = await talk.turn("hi")
        assert turn.error is not None
        assert turn.error.data == {"kind": "unreachable", "retryable": True}
        assert "base_url" in turn.text


async def test_a_server_that_falls_silent_is_given_up_and_its_text_kept(home: Home) -> None:
    async with fake_server(hangs("half an ans"), answers("yes")) as server:
        home.model_at(server.base_url)
        home.configure(f"{home.provider}\noptions = {{ idle_timeout = 0.5 }}")
        async with home.talk() as talk:
            turn = await talk.turn("hi")
            assert turn.error is not None
            assert turn.error.data["kind"] in ("timeout", "stream_dropped")
            assert turn.text == f"half an ans{turn.error.message}"
            assert (await talk.turn("and now?")).text == "yes"
        assert rows_of(server)[1]["content"].startswith("half an ans\n\n[this turn ended with an error")
