"""`wholeturn run` in a session that is stored already: a named one, or the newest of the folder."""

import json

from tests.process.homes import Home
from tests.process.test_commands import wholeturn
from tests.support.wire_order import Json
from tests.support.wire_talk import replayed_turns, text_of


def asked(home: Home, *arguments: str) -> Json:
    """Run it; its JSON."""
    done = wholeturn(home, "run", "--output", "json", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    result: Json = json.loads(done.stdout)
    return result


async def test_a_session_goes_on_from_command_to_command_and_in_an_editor(home: Home) -> None:
    first = asked(home, "one")
    second = asked(home, "--session", first["sessionId"], "two")
    third = asked(home, "--continue", "three")
    assert {result["sessionId"] for result in (first, second, third)} == {first["sessionId"]}
    assert [result["text"] for result in (first, second, third)] == [
        "1: you said one",
        "2: you said two",
        "3: you said three",
    ]
    async with home.talk() as talk:
        talk.session_id = first["sessionId"]
        replay = replayed_turns(await talk.load(talk.agent))
    assert [text_of(turn.updates, "user_message_chunk") for turn in replay] == ["one", "two", "three"]


def test_a_trim_of_a_session_that_goes_on_is_told_with_all_its_figures(home: Home) -> None:
    home.configure(profile="max_history_messages = 2")
    session = asked(home, "one")["sessionId"]
    asked(home, "--session", session, "two")
    (trim,) = asked(home, "--session", session, "three")["historyTrimmed"]
    assert trim.pop("trimId")
    assert trim == {
        "droppedMessages": 2,
        "droppedTurns": 1,
        "keptTurns": 2,
        "reason": "history turn limit exceeded",
        "strategy": "recent",
    }
    done = wholeturn(home, "run", "--continue", "four")
    assert "history trimmed: 2 messages left out, 2 turns kept (history turn limit exceeded)" in done.stderr


def test_the_newest_session_that_was_used_is_continued(home: Home) -> None:
    older, newer = asked(home, "older")["sessionId"], asked(home, "newer")["sessionId"]
    assert asked(home, "--continue", "on")["sessionId"] == newer
    asked(home, "--session", older, "again")
    assert asked(home, "--continue", "on")["sessionId"] == older


def test_a_named_session_works_in_its_own_folder(home: Home) -> None:
    session = asked(home, "one")["sessionId"]
    done = wholeturn(home, "run", "--session", session, "two", cwd=home.spawn)
    assert (done.returncode, done.stdout) == (0, "2: you said two\n")
    done = wholeturn(home, "run", "--session", session, "--cwd", str(home.spawn), "three")
    assert (done.returncode, "folder" in done.stderr) == (1, True)


def test_what_is_not_there_is_said(home: Home) -> None:
    for arguments, words in (
        (["--session", "sess_none"], "sess_none"),
        (["--continue"], "no session of"),
    ):
        done = wholeturn(home, "run", *arguments, "hi")
        assert (done.returncode, words in done.stderr) == (1, True), done.stderr
    assert wholeturn(home, "run", "--continue", "--session", "x", "hi").returncode == 2
    session = asked(home, "--cwd", str(home.spawn), "one")["sessionId"]
    home.spawn.rmdir()
    done = wholeturn(home, "run", "--session", session, "two")
    assert (done.returncode, "not there any more" in done.stderr) == (1, True), done.stderr


async def test_a_session_that_an_editor_holds_is_left_alone(home: Home) -> None:
    async with home.talk() as talk:
        await talk.turn("one")
        done = wholeturn(home, "run", "--session", talk.session_id, "two")
        assert (done.returncode, "in use" in done.stdout) == (1, True)
