"""One trim on all surfaces, with equal numbers: ACP and events on each transport, the CLI, the store.

Three processes write to one session in turn: a server on stdio, a one-shot command, the gateway. Whoever
makes the trim, those who look on see it once, while it happens.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import trio

from tests.process.gateways import Gateway, Seen, Socket, gateway, in_folder
from tests.process.homes import Home
from tests.process.test_commands import wholeturn
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet

TWIN = "wholeturn/history_trimmed"


class Trim(NamedTuple):
    """What every surface tells of a trim."""

    dropped_messages: int
    dropped_turns: int
    kept_turns: int
    reason: str
    strategy: str
    trim_id: str


def of_camel(facts: Json) -> Trim:
    """Out of ACP's spelling."""
    names = ("droppedMessages", "droppedTurns", "keptTurns", "reason", "strategy", "trimId")
    return Trim(*(facts[name] for name in names))


def of_snake(facts: Json) -> Trim:
    """Out of the gateway's own and the store's."""
    return Trim(*(facts[name] for name in Trim._fields))


def on_acp(frames: Iterable[Json]) -> list[Trim]:
    """The trims that an ACP client was told: each by the product's own update, then by its twin."""
    updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
    own = [update for update in updates if update["sessionUpdate"] == "history_trimmed"]
    twins = [
        of_camel(update["_meta"][TWIN])
        for update in updates
        if TWIN in update.get("_meta", {}) and not update["sessionUpdate"].startswith("user_message")
    ]
    short = [(one["droppedMessages"], one["keptTurns"], one["reason"]) for one in own]
    assert short == [(trim.dropped_messages, trim.kept_turns, trim.reason) for trim in twins]
    return twins


def on_feed(seen: Seen) -> list[Trim]:
    """The trims that a subscriber was told."""
    return [of_snake(frame) for frame in seen.frames if frame["type"] == "history_trimmed"]


def stored(home: Home) -> list[Trim]:
    """The trims in the database."""
    with sqlite3.connect(f"file:{home.data / 'sessions.db'}?mode=ro", uri=True) as store:
        rows = store.execute("SELECT payload FROM entries WHERE kind = 'trim' ORDER BY place").fetchall()
    store.close()
    return [of_snake(json.loads(payload)) for (payload,) in rows]


def turns_of_trims(home: Home) -> list[str]:
    """The turns in which the trims in the database were made."""
    with sqlite3.connect(f"file:{home.data / 'sessions.db'}?mode=ro", uri=True) as store:
        rows = store.execute("SELECT turn_id FROM entries WHERE kind = 'trim' ORDER BY place").fetchall()
    store.close()
    return [turn_id for (turn_id,) in rows]


def shown(home: Home, session_id: str) -> list[Trim]:
    """The trims that the command line shows of a session."""
    done = wholeturn(home, "sessions", "show", session_id, "--json")
    turns = [json.loads(line) for line in done.stdout.splitlines()]
    rounds = [one for turn in turns for one in turn["iterations"]]
    return [of_snake(trim) for one in rounds for trim in one["trims"]]


async def run_once(home: Home, session_id: str, prompt: str) -> list[Trim]:
    """A one-shot command in the session; the trims of its JSON."""
    arguments = ["run", "--session", session_id, "--output", "json", prompt]
    done = await trio.to_thread.run_sync(lambda: wholeturn(home, *arguments))
    assert done.returncode == 0, done.stdout + done.stderr
    return [of_camel(facts) for facts in json.loads(done.stdout)["historyTrimmed"]]


async def test_one_trim_is_seen_with_equal_numbers_on_all_surfaces(home: Home) -> None:
    home.configure(profile="max_history_messages = 2")
    async with gateway(home) as made, home.start() as agent:
        await greet(agent)
        talk = await Talk.new(agent, home.work)
        for prompt in ("one", "two"):
            await talk.turn(prompt)
        async with (
            made.stream() as stream,
            made.stream(f"?types=history_trimmed&session_id={talk.session_id}") as trims_alone,
            made.socket("/api/events/ws", "events") as events,
            made.socket("/acp", "acp") as editor,
        ):
            lookers = (stream, trims_alone, events)
            await open_in(editor, talk, home)

            # The server on stdio makes one; all others look on.
            await talk.turn("three")
            (first,) = on_acp(agent.frames)
            await seen_by(lookers, editor, first)
            assert stored(home) == shown(home, talk.session_id) == [first]

            # The one-shot command makes one.
            await agent.call("session/close", {"sessionId": talk.session_id})
            (second,) = await run_once(home, talk.session_id, "four")
            await seen_by(lookers, editor, second)

            # The gateway makes one itself, for the client that was looking on until now.
            await prompt_in(editor, talk, "five")
            third = on_acp(editor.frames)[-1]
            await seen_by(lookers, editor, third)

            expected = [first, second, third]
            assert len(set(expected)) == 3
            assert stored(home) == shown(home, talk.session_id) == expected
            for looker in lookers:
                assert on_feed(looker) == expected
            assert on_acp(editor.frames) == expected
            told_with_their_origin(stream, home)
            await same_numbers_again(made, stream)


async def open_in(editor: Socket, talk: Talk, home: Home) -> None:
    """The session in an editor of the gateway, which may only read as long as another process writes."""
    await editor.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    await editor.call("session/load", {"sessionId": talk.session_id, **in_folder(home.work)})


async def prompt_in(editor: Socket, talk: Talk, text: str) -> None:
    """A turn of the editor."""
    prompt = [{"type": "text", "text": text}]
    result = await editor.call("session/prompt", {"sessionId": talk.session_id, "prompt": prompt})
    assert result["stopReason"] == "end_turn"


async def seen_by(lookers: Iterable[Seen], editor: Socket, trim: Trim) -> None:
    """It arrives everywhere while its session lives."""
    for looker in lookers:
        await looker.until(lambda frame: frame.get("trim_id") == trim.trim_id)
    await editor.until(lambda frame: trim.trim_id in json.dumps(frame))


def told_with_their_origin(stream: Seen, home: Home) -> None:
    """Each trim with its turn; the one of the gateway's own with all that is known of it."""
    told = [frame for frame in stream.frames if frame["type"] == "history_trimmed"]
    assert [frame["turn_id"] for frame in told] == turns_of_trims(home)
    assert (told[2]["agent_alias"], told[2]["channel"]) == ("default", "acp")


async def same_numbers_again(made: Gateway, stream: Seen) -> None:
    """Who comes back with the id of its last event gets the rest of them, the same bytes."""
    frames = stream.frames[1:]
    async with made.stream(f"?last_event_id={frames[0]['event_id']}") as again:
        await again.until(lambda frame: frame.get("event_id") == frames[-1]["event_id"])
        assert again.frames[1 : len(frames)] == frames[1:]
