"""Questions of the model to the person: offered where the client shows forms, and any answer may come."""

from typing import Any

import pytest
import trio

from tests.process.homes import Home, call, calls, says
from tests.process.models import answers, tools_of
from tests.support.acp_schema import check_params
from tests.support.fakes_llm import fake_server
from tests.support.wire import Handler, Refused
from tests.support.wire_order import Json

FORMS: Json = {"elicitation": {"form": {}}}
PICK = call("ask_user", question="Which one?", choices=[{"answer": "red"}, {"answer": "blue"}])
OPEN = call("ask_user", question="What is it called?")
NO_ANSWER = "The user did not answer. Go on as well as you can without it."


def answering(answer: object) -> tuple[Handler, list[Json]]:
    """A client that answers so, and what it was asked."""
    asked: list[Json] = []

    async def handler(params: Json) -> object:
        await trio.lowlevel.checkpoint()
        asked.append(params)
        if isinstance(answer, Refused):
            raise answer
        return answer

    return handler, asked


async def told(home: Home, wanted: Json, answer: object) -> tuple[Json, list[Json]]:
    """The call as it ended, and what the client was asked."""
    home.script(calls(wanted), says("ok"))
    handler, asked = answering(answer)
    async with home.talk(FORMS, handlers={"elicitation/create": handler}) as talk:
        turn = await talk.turn("go")
        assert (turn.stop, turn.text) == ("end_turn", "ok")
        assert all(params["sessionId"] == talk.session_id for params in asked)
    return turn.calls[0], asked


def accepted(answer: object) -> Json:
    return {"action": "accept", "content": {"answer": answer}}


async def test_an_answer_reaches_the_model(home: Home) -> None:
    shown, (asked,) = await told(home, PICK, accepted("blue"))
    assert (shown["status"], shown["content"][0]["content"]["text"]) == ("completed", "blue")
    assert (shown["title"], shown["kind"]) == ("Ask: Which one?", "other")
    assert asked["message"] == "Which one?"
    assert asked["requestedSchema"]["properties"]["answer"]["enum"] == ["red", "blue"]
    check_params("elicitation/create", asked)


async def test_an_answer_in_the_persons_own_words(home: Home) -> None:
    shown, (asked,) = await told(home, OPEN, accepted("Ada"))
    assert shown["content"][0]["content"]["text"] == "Ada"
    assert "enum" not in asked["requestedSchema"]["properties"]["answer"]


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "later"},
        {"action": "accept"},
        {"action": "accept", "content": None},
        accepted("green"),
        accepted(7),
        accepted(" "),
        None,
        [],
        Refused({"code": -32601, "message": "Method not found"}),
        Refused({"code": -32603, "message": "no"}),
    ],
)
async def test_what_is_no_answer_is_said_to_the_model(home: Home, answer: Any) -> None:
    shown, asked = await told(home, PICK, answer)
    assert (shown["status"], shown["content"][0]["content"]["text"]) == ("failed", NO_ANSWER)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"question": ""},
        {"question": "x" * 3000},
        {"question": "x", "choices": [{"answer": "a"}, {"answer": "a"}]},
        {"question": "x", "choices": [{"answer": str(number)} for number in range(30)]},
        {"question": "x", "choices": [{"answer": " "}]},
        {"question": "x", "choices": ["a"]},
    ],
)
async def test_a_question_that_cannot_be_put_is_not_put(home: Home, arguments: Json) -> None:
    shown, asked = await told(home, call("ask_user", **arguments), accepted("a"))
    assert (shown["status"], asked) == ("failed", [])


@pytest.mark.parametrize(
    ("offers", "there"),
    [(FORMS, True), ({"elicitation": {}}, False), ({"elicitation": {"url": {}}}, False), ({}, False)],
)
async def test_the_tool_is_offered_only_where_there_are_forms(home: Home, offers: Json, there: bool) -> None:
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        async with home.talk(offers) as talk:
            await talk.turn("go")
    assert ("ask_user" in tools_of(server)) is there


async def test_in_plan_mode_it_may_be_asked_too(home: Home) -> None:
    home.script(calls(OPEN), says("ok"))
    handler, asked = answering(accepted("Ada"))
    async with home.talk(FORMS, handlers={"elicitation/create": handler}) as talk:
        await talk.agent.call("session/set_mode", {"sessionId": talk.session_id, "modeId": "plan"})
        await talk.turn("go")
    assert len(asked) == 1
