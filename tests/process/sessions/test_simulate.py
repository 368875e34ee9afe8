"""`wholeturn simulate` and `wholeturn inspect` as a person calls them; the page in a real browser."""

import json
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from acp_server.programs.transcripts.transfer import exported
from runtime.values.profiles import Profile
from tests.process.homes import Home
from tests.process.test_commands import wholeturn
from tests.support.fakes import EchoTool, ask, call, make_session, script

ROOMY = Profile(max_context_tokens=1_000_000, max_history_messages=10_000)
LIMIT = ("--max-context-tokens", "6000", "--context-window", "32000")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


async def recorded(path: Path, turns: int, *, rounds: int = 1) -> str:
    """An exported session that never trimmed; its id."""
    provider = script({"calls": [call("x" * 600)], "repeat": rounds}, {"text": "y" * 700}, loop=True)
    session, _, store = await make_session(provider, profile=ROOMY, tools=[EchoTool()], window=1_000_000)
    for number in range(turns):
        await ask(session, f"prompt {number} <b>&</b> ".ljust(200, "z"))
    record = await store.session("s")
    assert record is not None
    with path.open("wb") as file:
        async for line in exported(store, record):
            file.write(line)
    return record.session_id


async def test_the_table_names_each_trim(home: Home, tmp_path: Path) -> None:
    await recorded(tmp_path / "s.jsonl", 30)
    done = wholeturn(home, "simulate", str(tmp_path / "s.jsonl"), *LIMIT)
    lines = done.stdout.splitlines()
    assert "60 requests of 30 turns" in lines[-1]
    trims = [line for line in lines if "context token budget exceeded" in line]
    assert f"{len(trims)} trims" in lines[-1]
    assert len(trims) > 5


async def test_json_adds_up_and_no_request_is_over_its_limit(home: Home, tmp_path: Path) -> None:
    await recorded(tmp_path / "s.jsonl", 30)
    done = wholeturn(
        home, "simulate", str(tmp_path / "s.jsonl"), *LIMIT, "--json", "--retention", "head-tail"
    )
    *requests, end = map(json.loads, done.stdout.splitlines())
    for one in requests:
        assert sum(one["parts"].values()) == one["tokens"] <= one["limit"] == 6000
    gone = [gone for one in requests for gone in one["gone"]]
    assert {one["strategy"] for one in gone} == {"head-tail"}
    # The first turn is the head; it never goes.
    assert 1 not in {turn["turn"] for one in gone for turn in one["turns"]}
    assert end["trims"] == len(gone)
    assert end["droppedTurns"] == sum(len(one["turns"]) for one in gone)


async def test_the_rounds_inside_a_turn_can_be_bounded_too(home: Home, tmp_path: Path) -> None:
    await recorded(tmp_path / "s.jsonl", 2, rounds=8)
    done = wholeturn(home, "simulate", str(tmp_path / "s.jsonl"), "--loop-context", "count:3", "--json")
    *requests, _ = map(json.loads, done.stdout.splitlines())
    reasons = [gone["reason"] for one in requests for gone in one["gone"]]
    assert len(reasons) == 10
    assert all("loop context trimmed" in reason for reason in reasons)


async def test_a_stored_session_by_its_id_and_what_fills_it(home: Home) -> None:
    home.script({"text": "an answer", "repeat": True})
    async with home.talk() as talk:
        for prompt in ("one", "two", "three"):
            await talk.turn(prompt)
    done = wholeturn(home, "simulate", talk.session_id, "--max-history-messages", "1")
    assert "3 requests of 3 turns: 2 trims took 2 turns" in done.stdout
    shown = wholeturn(home, "inspect", talk.session_id)
    assert "| turn 1 |" in shown.stdout
    assert "**leaves next**" in shown.stdout
    facts = json.loads(wholeturn(home, "inspect", talk.session_id, "--json").stdout)
    parts = facts["system"] + facts["tools"] + facts["breadcrumb"] + facts["notes"]
    assert parts + sum(turn["tokens"] for turn in facts["turns"]) == facts["estimated"]
    assert [turn["turn"] for turn in facts["turns"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--retention", "x"), "may be recent or head-tail"),
        (("--max-context-tokens", "-1"), "may not be negative"),
        (("--trim-slack-ratio", "1"), "must be below 1"),
        (("--trim-slack-ratio", "nan"), "may not be negative or endless"),
        (("--context-window", "0"), "must be at least 1"),
        (("--loop-context", "os:getcwd"), "cannot be made: TypeError"),
        (("--loop-context", "summarize:100/2"), "needs a model"),
        (("--loop-context", "count"), "it may be count:KEEP_LAST"),
    ],
)
async def test_limits_that_are_none(home: Home, tmp_path: Path, flags: tuple[str, ...], why: str) -> None:
    await recorded(tmp_path / "s.jsonl", 1)
    done = wholeturn(home, "simulate", str(tmp_path / "s.jsonl"), *flags)
    assert (done.returncode, why in done.stderr) == (1, True)


async def test_what_is_no_transcript(home: Home, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    assert "Line 1: not JSON" in wholeturn(home, "simulate", str(tmp_path / "x")).stderr
    assert "There is no session" in wholeturn(home, "simulate", "sess_none").stderr
    assert "There is no session" in wholeturn(home, "inspect", "sess_none").stderr


async def test_five_hundred_turns_take_less_than_two_seconds(home: Home, tmp_path: Path) -> None:
    """Of the processor, in the calmest of three runs: other work on the machine is not this one's."""
    await recorded(tmp_path / "s.jsonl", 500)
    spent = []
    for _ in range(3):
        start = child_seconds()
        wholeturn(home, "simulate", str(tmp_path / "s.jsonl"), *LIMIT, "--html", str(tmp_path / "s.html"))
        spent.append(child_seconds() - start)
    assert min(spent) < 2


def child_seconds() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---------------------------------------------------------------- the page


def browse(page: Path, fragment: str, profile: Path) -> str:
    """The page as a browser has it once its script has run."""
    browser = next(found for name in BROWSERS if (found := shutil.which(name)))
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={profile}",
            "--virtual-time-budget=3000",
            "--dump-dom",
            f"{page.as_uri()}#{fragment}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


async def page_of(home: Home, folder: Path) -> tuple[Path, list[dict[str, object]]]:
    """The page of a session, and its requests."""
    await recorded(folder / "s.jsonl", 40)
    wholeturn(home, "simulate", str(folder / "s.jsonl"), *LIMIT, "--html", str(folder / "s.html"))
    lines = wholeturn(home, "simulate", str(folder / "s.jsonl"), *LIMIT, "--json").stdout.splitlines()
    return folder / "s.html", [json.loads(line) for line in lines[:-1]]


async def test_the_page_is_whole_by_itself(home: Home, tmp_path: Path) -> None:
    page, requests = await page_of(home, tmp_path)
    text = page.read_text()
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "<b>&</b>" not in text
    assert text.count('class="bar"') == len(requests) == 80
    assert text.count('class="mark"') == sum(bool(one["gone"]) for one in requests) > 10


@pytest.mark.system
async def test_a_browser_shows_the_trims(home: Home, tmp_path: Path) -> None:
    """It runs the page's script: the request of the address is open and says what left before it."""
    page, requests = await page_of(home, tmp_path)
    number = next(at for at, one in enumerate(requests, 1) if one["gone"])
    dom = browse(page, str(number), tmp_path / "profile")
    (shown,) = re.findall(r'<div id="told"[^>]*>(.*?)</div>', dom, re.DOTALL)
    assert f"Request {number}: turn" in shown
    assert "Before it left: 4 messages (context token budget exceeded; recent" in shown
    assert "turn 1: prompt 0 &lt;b&gt;&amp;&lt;/b&gt;" in shown
    assert f'class="bar open" data-n="{number}"' in dom
    trims = sum(bool(one["gone"]) for one in requests)
    assert f'<p id="sum">80 requests, {trims} trims, ' in dom
    assert dom.count('class="mark"') == trims
