"""`wholeturn sessions` and `wholeturn replay` as a person or a script calls them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.process.homes import Home, call, calls, says
from tests.process.test_commands import wholeturn
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet, text_of

PROFILE = "max_history_messages = 2"


async def talked(home: Home, *prompts: str) -> Talk:
    """A stored session with a tool and, after the second prompt, trims."""
    (home.work / "a.txt").write_text("\n".join(f"line {number}" for number in range(40)))
    home.configure(profile=PROFILE)
    home.script(
        calls(call("read_file", path="a.txt"), text="I look", thought="hm"),
        says("it has lines"),
        echo="ok {last}",
    )
    async with home.talk() as talk:
        for prompt in prompts or ("read a.txt", "two", "three", "four"):
            await talk.turn(prompt)
    return talk


def rows(text: str) -> list[Json]:
    return [json.loads(line) for line in text.splitlines()]


async def test_list_shows_the_sessions_of_a_folder_newest_first(home: Home) -> None:
    first, second = await talked(home, "one"), await talked(home, "two words")
    done = wholeturn(home, "sessions", "list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [second.session_id, first.session_id]
    assert "two words" in done.stdout
    listed = rows(wholeturn(home, "sessions", "list", "--json", "--limit", "1").stdout)
    assert [(row["sessionId"], row["title"], row["cwd"]) for row in listed] == [
        (second.session_id, "two words", str(home.work))
    ]
    assert wholeturn(home, "sessions", "list", "--cwd", str(home.spawn)).stdout == ""


async def test_show_prints_the_transcript_with_its_trims(home: Home) -> None:
    talk = await talked(home)
    text = wholeturn(home, "sessions", "show", talk.session_id).stdout
    for part in (
        "> read a.txt",
        "(hm)",
        "I look",
        "* Read a.txt: completed",
        "    4|line 3",
        "28 more lines",
    ):
        assert part in text
    assert text.count("left the model's view here") == 2
    assert text.index("── turn 3") > text.index("the model sees the conversation from here on")
    assert "line 39" in wholeturn(home, "sessions", "show", talk.session_id, "--full").stdout
    alone = wholeturn(home, "sessions", "show", talk.session_id, "--turn", "2").stdout
    assert ("> two" in alone, "> three" in alone) == (True, False)
    turns = rows(wholeturn(home, "sessions", "show", talk.session_id, "--json").stdout)
    assert [turn["turn"] for turn in turns] == [1, 2, 3, 4]
    assert turns[0]["iterations"][0]["tools"][0]["status"] == "completed"


async def test_what_was_exported_is_the_same_session_in_another_store(home: Home, tmp_path: Path) -> None:
    talk = await talked(home)
    file, elsewhere = tmp_path / "out.jsonl", ("--store", str(tmp_path / "other.db"))
    assert wholeturn(home, "sessions", "export", talk.session_id, "--output", str(file)).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o600
    done = wholeturn(home, "sessions", "import", str(file), *elsewhere)
    assert (done.returncode, done.stdout) == (0, f"{talk.session_id}\n")
    again = wholeturn(home, "sessions", "export", talk.session_id, *elsewhere)
    assert again.stdout.encode() == file.read_bytes()
    home.extra_env["WHOLETURN_STORE"] = elsewhere[1]
    async with home.resumed(talk) as replay:
        assert text_of(replay, "user_message_chunk") == "read a.txttwothreefour"
        assert (await talk.turn("five")).stop == "end_turn"


async def test_an_import_of_what_is_there_gets_a_new_id_and_another_folder_if_wanted(home: Home) -> None:
    talk = await talked(home, "one")
    out = wholeturn(home, "sessions", "export", talk.session_id).stdout
    done = wholeturn(home, "sessions", "import", "-", "--cwd", "..", stdin=out)
    new = done.stdout.strip()
    assert new.startswith("sess_")
    assert new != talk.session_id
    assert "is taken" in done.stderr
    listed = {
        row["sessionId"]: row["cwd"] for row in rows(wholeturn(home, "sessions", "list", "--json").stdout)
    }
    assert listed == {talk.session_id: str(home.work), new: str(home.work.parent)}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "empty"),
        ("hello\n", "Line 1: not JSON"),
        ('{"format":"wholeturn-session","version":99}\n', "newer Wholeturn"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_in_words(home: Home, data: str, said: str) -> None:
    home.configure()
    done = wholeturn(home, "sessions", "import", "-", stdin=data)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert wholeturn(home, "sessions", "list").stdout == ""


async def test_delete_removes_and_says_so(home: Home) -> None:
    talk = await talked(home, "one")
    done = wholeturn(home, "sessions", "delete", talk.session_id, "sess_nobody")
    assert (done.returncode, done.stdout) == (
        1,
        f"{talk.session_id}: deleted\nsess_nobody: is not stored\n",
    )
    assert wholeturn(home, "sessions", "list").stdout == ""


async def test_gc_tells_first_and_removes_when_told_to(home: Home) -> None:
    old, new = await talked(home, "old"), await talked(home, "new")
    with closing(sqlite3.connect(home.data / "sessions.db")) as database, database:
        database.execute(
            "UPDATE sessions SET updated_at = '2020-01-01T00:00:00.000Z' WHERE session_id = ?",
            [old.session_id],
        )
    told = wholeturn(home, "sessions", "gc", "--older-than", "30d").stdout
    assert (old.session_id in told, new.session_id in told) == (True, False)
    assert "1 sessions were last changed" in told
    assert len(rows(wholeturn(home, "sessions", "list", "--json").stdout)) == 2
    assert (
        rows(wholeturn(home, "sessions", "gc", "--older-than", "30d", "--yes", "--json").stdout)[0]["removed"]
        == 1
    )
    assert [row["sessionId"] for row in rows(wholeturn(home, "sessions", "list", "--json").stdout)] == [
        new.session_id
    ]
    assert wholeturn(home, "sessions", "gc", "--older-than", "soon").returncode == 1


async def test_replay_makes_every_request_again(home: Home) -> None:
    talk = await talked(home)
    done = wholeturn(home, "replay", talk.session_id)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith(
        "5 requests of 4 turns made again, 2 trims. All are the same"
    )
    made = rows(wholeturn(home, "replay", talk.session_id, "--turn", "1", "--json", "--rows").stdout)
    assert [row.get("iteration") for row in made] == [0, 1, None]
    assert [message["role"] for message in made[1]["messages"]] == ["system", "user", "assistant", "tool"]
    assert made[-1] == {"turns": 1, "requests": 2, "trims": 0, "notRecorded": 0, "same": True}


async def test_replay_names_the_first_difference(home: Home) -> None:
    talk = await talked(home)
    with closing(sqlite3.connect(home.data / "sessions.db")) as database, database:
        database.execute("UPDATE entries SET payload = replace(payload, 'it has lines', 'it has none')")
    done = wholeturn(home, "replay", talk.session_id)
    assert done.returncode == 1
    assert "Different: turn " in done.stdout


async def test_a_damaged_step_is_named_and_the_rest_is_there(home: Home) -> None:
    talk = await talked(home)
    with closing(sqlite3.connect(home.data / "sessions.db")) as database, database:
        query = "SELECT place, key FROM entries WHERE kind = 'prompt' ORDER BY place LIMIT 1"
        place, key = database.execute(query).fetchone()
        database.execute("UPDATE entries SET payload = x'00ff' WHERE place = ?", [place])
    shown = wholeturn(home, "sessions", "show", talk.session_id)
    assert (shown.returncode, key in shown.stderr) == (1, True)
    for part in ("[its prompt cannot be read]", "I look", "> two", "> four"):
        assert part in shown.stdout
    turns = rows(wholeturn(home, "sessions", "show", talk.session_id, "--json").stdout)
    assert [turn["unreadable"] for turn in turns] == [[key], [], [], []]
    out = wholeturn(home, "sessions", "export", talk.session_id)
    assert (out.returncode, key in out.stderr) == (1, True)
    elsewhere = ("--store", str(home.spawn / "other.db"))
    assert wholeturn(home, "sessions", "import", "-", *elsewhere, stdin=out.stdout).returncode == 0


BAD_BYTE = "CAST(substr(CAST({0} AS BLOB), 1, 1) || x'ff' || substr(CAST({0} AS BLOB), 3) AS TEXT)"


@pytest.mark.parametrize("column", ["title", "cwd", "state", "updated_at", "key"])
async def test_a_byte_that_is_no_text_hides_no_session(home: Home, column: str) -> None:
    whole = await talked(home, "one", "two")
    damaged = await talked(home, "three", "four")
    table, where = (
        ("entries", "kind = 'reply' AND place >> 32 = 2") if column == "key" else ("sessions", "number = 2")
    )
    with closing(sqlite3.connect(home.data / "sessions.db")) as database, database:
        database.execute(f"UPDATE {table} SET {column} = {BAD_BYTE.format(column)} WHERE {where}")
    assert f"({column})" in wholeturn(home, "doctor", "--offline").stdout
    async with home.start() as agent:
        await greet(agent)
        listed = (await agent.call("session/list", {}))["sessions"]
        assert {one["sessionId"] for one in listed} == {whole.session_id, damaged.session_id}
        folder = next(one["cwd"] for one in listed if one["sessionId"] == damaged.session_id)
        damaged.cwd = Path(folder)
        for talk in (whole, damaged):
            shown = await talk.load(agent)
            assert "ok" in text_of(shown)
    for command in (("sessions", "show"), ("sessions", "export"), ("replay",)):
        assert wholeturn(home, *command, whole.session_id).returncode == 0
        assert wholeturn(home, *command, damaged.session_id).returncode == 0
    assert wholeturn(home, "doctor", "--offline").returncode == 0


@pytest.mark.parametrize("command", [("sessions", "show"), ("sessions", "export"), ("replay",)])
def test_a_session_that_is_not_there(home: Home, command: tuple[str, ...]) -> None:
    home.configure()
    done = wholeturn(home, *command, "sess_nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no session 'sess_nobody'" in done.stderr
