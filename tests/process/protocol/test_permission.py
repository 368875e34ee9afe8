"""Permission from the model's call to the client's answer and back, with the real process and real files."""

import sys
from collections.abc import Awaitable, Callable

import pytest
import trio

from tests.process.homes import Home, call, calls, says
from tests.support.wire import Refused
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, Turn, of_kind

COMMAND = (sys.executable, "-m", "acp_server")
EDIT = call("write_file", path="made.txt", content="new\n")
RUN = call("run_command", command="touch ran.txt")
PLAN = call("exit_plan_mode", plan="1. write")
SHOWN = {"made.txt": EDIT, "ran.txt": RUN}


class Client:
    """Answers questions by kind of option, or with what `answer` gives; keeps what it was asked."""

    def __init__(self, *kinds: str) -> None:
        self.asked: list[Json] = []
        self._kinds = list(kinds)

    async def __call__(self, params: Json) -> object:
        self.asked.append(params)
        await trio.lowlevel.checkpoint()
        kind = self._kinds.pop(0)
        chosen = next(option for option in params["options"] if option["kind"] == kind)
        return {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}


Answer = Callable[[Json], Awaitable[object]]


async def turn_with(home: Home, answer: Answer, *wanted: Json, mode: str = "", repeat: bool = False) -> Turn:
    """One turn in which the model makes these calls."""
    home.script(calls(*wanted, repeat=repeat), says("done"))
    async with home.talk(handlers={"session/request_permission": answer}) as talk:
        if mode:
            await set_mode(talk, mode)
        return await talk.turn("go")


async def set_mode(talk: Talk, mode: str) -> None:
    await talk.agent.call("session/set_mode", {"sessionId": talk.session_id, "modeId": mode})


def statuses(turn: Turn) -> list[str]:
    return [update["status"] for update in of_kind(turn.updates, "tool_call_update") if "status" in update]


async def test_an_edit_asks_and_shows_what_it_would_change(home: Home) -> None:
    client = Client("allow_once")
    turn = await turn_with(home, client, EDIT)
    assert (home.work / "made.txt").read_text() == "new\n"
    (asked,) = client.asked
    shown = asked["toolCall"]
    assert shown["toolCallId"] == of_kind(turn.updates, "tool_call")[0]["toolCallId"]
    assert [part for part in shown["content"] if part["type"] == "diff"] == [
        {"type": "diff", "path": str(home.work / "made.txt"), "newText": "new\n"}
    ]
    assert [option["kind"] for option in asked["options"]] == [
        *("allow_once", "allow_always", "reject_once", "reject_always")
    ]


@pytest.mark.parametrize("name", SHOWN)
async def test_a_rejected_call_fails_and_the_turn_goes_on(home: Home, name: str) -> None:
    turn = await turn_with(home, Client("reject_once"), SHOWN[name])
    assert (turn.stop, turn.text, statuses(turn)[-1]) == ("end_turn", "done", "failed")
    assert not (home.work / name).exists()


async def refuses(params: Json) -> object:
    raise Refused({"code": -32601, "message": "Method not found"})


async def breaks(params: Json) -> object:
    raise Refused({"code": -32603, "message": "Internal error"})


async def says_nothing(params: Json) -> object:
    return None


async def invents(params: Json) -> object:
    return {"outcome": {"outcome": "selected", "optionId": "allow_everything"}}


async def says_it_wrongly(params: Json) -> object:
    return {"outcome": {"outcome": "allowed", "optionId": params["options"][0]["optionId"]}}


@pytest.mark.parametrize("answer", [refuses, breaks, says_nothing, invents, says_it_wrongly])
async def test_what_is_no_answer_allows_nothing(home: Home, answer: Answer) -> None:
    turn = await turn_with(home, answer, RUN, EDIT)
    assert turn.stop == "end_turn"
    assert list(home.work.iterdir()) == []


async def test_a_cancelled_answer_ends_the_turn(home: Home) -> None:
    async def cancelled(params: Json) -> object:
        await trio.lowlevel.checkpoint()
        return {"outcome": {"outcome": "cancelled"}}

    turn = await turn_with(home, cancelled, RUN, EDIT)
    assert turn.stop == "cancelled"
    assert list(home.work.iterdir()) == []


async def test_a_turn_is_cancelled_while_nobody_answers(home: Home) -> None:
    home.script(calls(RUN), says("next"))
    came = trio.Event()

    async def never(params: Json) -> object:
        came.set()
        await trio.sleep_forever()

    async with home.talk(handlers={"session/request_permission": never}) as talk:
        since = len(talk.agent.frames)
        asked = await talk.ask("go")
        await came.wait()
        with trio.fail_after(5):
            await talk.cancel()
            assert (await talk.end_of(asked, since)).stop == "cancelled"
        assert (await talk.turn("and now?")).text == "next"
    assert list(home.work.iterdir()) == []


async def test_always_holds_for_the_project_and_is_forgotten_by_a_command(home: Home) -> None:
    client = Client("allow_always", "reject_once")
    await turn_with(home, client, RUN)
    (home.work / "ran.txt").unlink()
    await turn_with(home, client, RUN)
    assert (home.work / "ran.txt").exists()
    assert len(client.asked) == 1
    done = await trio.run_process(
        [*COMMAND, "permissions", "forget", "--all", "--cwd", str(home.work)],
        env=home.env,
        capture_stdout=True,
    )
    assert b"run_command:touch ran.txt" in done.stdout
    (home.work / "ran.txt").unlink()
    await turn_with(home, client, RUN)
    assert not (home.work / "ran.txt").exists()
    assert len(client.asked) == 2


@pytest.mark.parametrize(
    ("mode", "made"),
    [("accept_edits", {"made.txt"}), ("plan", set()), ("yolo", {"made.txt", "ran.txt"})],
)
async def test_what_each_mode_lets_happen_when_nobody_allows(home: Home, mode: str, made: set[str]) -> None:
    await turn_with(home, says_nothing, EDIT, RUN, mode=mode)
    assert {path.name for path in home.work.iterdir()} == made


async def test_a_plan_is_accepted_and_carried_out(home: Home) -> None:
    client = Client("allow_always")
    home.script(calls(EDIT), calls(PLAN), calls(EDIT), says("done"))
    async with home.talk(handlers={"session/request_permission": client}) as talk:
        await set_mode(talk, "plan")
        turn = await talk.turn("go")
    assert statuses(turn).count("failed") == 1
    assert (home.work / "made.txt").exists()
    assert [option["kind"] for option in client.asked[0]["options"]] == [
        *("allow_once", "allow_always", "reject_once")
    ]
    assert of_kind(turn.updates, "tool_call")[1]["kind"] == "switch_mode"
    assert of_kind(turn.updates, "current_mode_update")[-1]["currentModeId"] == "accept_edits"
    assert of_kind(turn.updates, "config_option_update") != []


async def test_a_turn_that_asks_too_often_ends(home: Home) -> None:
    home.configure(profile="max_approvals = 1")
    client = Client("reject_once", "reject_once")
    turn = await turn_with(home, client, RUN, repeat=True)
    assert turn.stop == "max_turn_requests"
    assert len(client.asked) == 1
    assert list(home.work.iterdir()) == []


async def test_rules_of_the_settings_decide_without_a_question(home: Home) -> None:
    path = home.root / "config" / "config.toml"
    rules = '[permissions]\nallow = ["run_command:touch*"]\ndeny = ["write_file"]\n'
    home.script(calls(RUN, EDIT), says("done"))
    path.write_text(f"{path.read_text()}\n{rules}")
    client = Client()
    async with home.talk(handlers={"session/request_permission": client}) as talk:
        await talk.turn("go")
    assert [path.name for path in home.work.iterdir()] == ["ran.txt"]
    assert client.asked == []


async def test_without_anyone_to_ask_nothing_is_allowed_and_a_flag_allows(home: Home) -> None:
    home.script(calls(EDIT), says("done"))
    for flags, there in ((), False), (("--mode", "accept_edits"), True):
        command = [*COMMAND, "run", "go", "--cwd", str(home.work), *flags]
        done = await trio.run_process(command, env=home.env, capture_stdout=True, capture_stderr=True)
        assert (home.work / "made.txt").exists() is there
        assert (b"not allowed" in done.stderr) is not there
