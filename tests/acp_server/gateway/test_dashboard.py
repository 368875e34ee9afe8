"""The dashboard in a real browser, in front of the whole gateway: it follows a session while it runs."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trio
from starlette.types import Receive, Scope, Send

from acp_server.config.settings import GatewaySettings, Options
from acp_server.gateway import serve
from acp_server.gateway.serve import build, make_state
from acp_server.gateway.sessions.process_app import GatewayState
from runtime.session.session import Session
from tests.acp_server.gateway.looked import desk
from tests.acp_server.gateway.serving import serving
from tests.support.browser import Page, browser
from tests.support.fakes import ask

TOKEN = "a-token-that-is-long-enough-to-be-one-0123"
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=alert(1)> safe\u202egnp.exe"
CONFIG = """\
[agents.default]
provider = "model"
runtime_profile = "small"

[providers.model]
kind = "scripted"
model = "scripted"
script = {script}
context_window = 32000

[runtime_profiles.small]
max_history_messages = 4
keep_tool_context_turns = 1
max_context_tokens = 9000
"""


class Stage(NamedTuple):
    """A gateway with one session in it. address: of the dashboard, with the token. streams: cut each."""

    state: GatewayState
    session: Session
    address: str
    host: str
    streams: list[Callable[[], None]]


def script(folder: Path, *replies: object, loop: bool = True) -> None:
    """What the model says from now on."""
    (folder / "script.json").write_text(json.dumps({"replies": list(replies), "loop": loop}))


def reading(lines: int = 40) -> tuple[object, object]:
    """A turn that looks at a file and answers."""
    call = {"name": "read_file", "arguments": {"path": "notes.txt", "limit": lines}}
    return {"calls": [call]}, {"text": ["The file has ", f"{lines} lines. " * 12]}


@asynccontextmanager
async def gateway(folder: Path, *replies: object) -> AsyncIterator[Stage]:
    """Serve, with a session whose model follows the script."""
    work = folder / "work"
    work.mkdir()
    (work / "notes.txt").write_text("".join(f"line {number} of the notes\n" for number in range(400)))
    script(folder, *replies)
    text = CONFIG.format(script=json.dumps(str(folder / "script.json")))
    (folder / "config.toml").write_text(text)
    env = {"WHOLETURN_CONFIG_DIR": str(folder), "WHOLETURN_DATA_DIR": str(folder)}
    async with trio.open_nursery() as nursery:
        state = make_state(Options(store="memory"), env, GatewaySettings(), TOKEN, nursery)
        session = state.app.session(await state.app.new_session(work))
        app, streams = build(state), list[Callable[[], None]]()

        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            if scope.get("path") == "/api/events":
                streams.append(scope["state"]["cut"])
            await app(scope, receive, send)

        async with serving(noting) as port:
            host = f"127.0.0.1:{port}"
            yield Stage(state, session, f"http://{host}/#token={TOKEN}", host, streams)
        nursery.cancel_scope.cancel()


async def opened(page: Page, stage: Stage) -> None:
    """The session, opened from the list by a click."""
    await page.open(stage.address)
    await page.until("document.querySelector('.sessions a')")
    await page.run("document.querySelector('.sessions a').click()")
    await page.until("document.querySelector('#feed').dataset.state === 'live'")


USED = "document.querySelector('#context header b')?.textContent ?? ''"


@pytest.mark.system
async def test_it_follows_a_session_that_runs(tmp_path: Path) -> None:
    async with gateway(tmp_path, *reading()) as stage, browser(tmp_path / "profile") as page:
        await ask(stage.session, "How long is notes.txt?")
        await opened(page, stage)
        await page.until("document.querySelectorAll('.turn-card').length === 1")
        before = await page.until(USED)
        await ask(stage.session, "And again?")
        await page.until(f"{USED} !== {json.dumps(before)}")
        await page.until("document.querySelectorAll('.turn-card').length === 2")
        assert await page.run("document.querySelectorAll('.notice').length") == 0
        for number in range(4):
            await ask(stage.session, f"Once more, {number}?")
        await page.until("document.querySelectorAll('.turn-card.dropped').length === 2")
        await page.until("document.querySelectorAll('#notices .notice').length === 2")
        why = await page.run("document.querySelector('.turn-card.dropped .why').textContent")
        assert "It left in turn 5 (history turn limit exceeded). There were more turns than this" in why
        assert "left the model's view" in await page.run("document.querySelector('#news').textContent")
        assert await page.run("document.querySelectorAll('.chart path.trim').length") == 2
        marks = "[...document.querySelectorAll('.turn-card > header .badge:first-of-type')]"
        assert (
            await page.run(f"{marks}.map(one => one.textContent)")
            == ["dropped"] * 2 + ["collapsed"] * 2 + ["in view"] * 2
        )
        assert page.errors == []
        assert page.hosts() == {stage.host}
        assert not any("token" in url for url in page.requested if "#" not in url)


@pytest.mark.system
async def test_the_meter_moves_while_a_turn_runs(tmp_path: Path) -> None:
    replies = [*reading(), reading()[0], {"text": "never said", "hang": True}]
    async with gateway(tmp_path, *replies) as stage, browser(tmp_path / "profile") as page:
        await ask(stage.session, "How long is notes.txt?")
        await opened(page, stage)
        before = await page.until(USED)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, stage.session, "And again?")
            await page.until("document.querySelector('.facts .badge.running')")
            await page.until("document.querySelector('.turn-card .badge.running')")
            await page.until(f"{USED} !== {json.dumps(before)}")
            await page.until("document.querySelectorAll('.turn-card .tool').length === 2")
            assert not stage.session.idle.is_set()
            stage.session.cancel()
        await page.until("!document.querySelector('.facts .badge.running')")
        await page.until("document.querySelector('.turn-card .badge.cancelled')")
        assert page.errors == []


@pytest.mark.system
async def test_hostile_texts_are_only_texts_and_long_ones_are_cut(tmp_path: Path) -> None:
    replies = ({"text": HOSTILE + "z" * 9000},)
    async with gateway(tmp_path, *replies) as stage, browser(tmp_path / "profile") as page:
        await ask(stage.session, HOSTILE)
        await opened(page, stage)
        await page.until("document.querySelector('.turn-card .prompt .text')")
        shown = await page.run("document.querySelector('.turn-card .prompt .text').textContent")
        assert shown == HOSTILE.replace("\u202e", "\\u202e")
        assert await page.run("document.querySelectorAll('main script, main img').length") == 0
        assert await page.run("document.title") != "taken"
        cut = "[...document.querySelectorAll('.turn-card > div:last-of-type .text')].pop().textContent.length"
        assert await page.run(cut) < 4100
        await page.run("[...document.querySelectorAll('.turn-card button.plain')].pop().click()")
        await page.until(f"{cut} > 9000")
        assert page.errors == []


@pytest.mark.system
async def test_the_keyboard_reaches_everything(tmp_path: Path) -> None:
    focused = "document.activeElement.id || document.activeElement.className"
    async with gateway(tmp_path, *reading()) as stage, browser(tmp_path / "profile") as page:
        for number in range(6):
            await ask(stage.session, f"Prompt {number}")
        await page.open(stage.address)
        await page.until("document.querySelector('.sessions a')")
        walked = []
        for _ in range(4):
            await page.press("Tab")
            walked.append(await page.run(focused))
        assert walked[:3] == ["skip", "brand", "search"]
        assert await page.run("document.activeElement.matches('.sessions a:focus-visible')")
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert await page.run(outline) == "solid"
        await page.press("Enter")
        await page.until("document.querySelectorAll('.request').length === 12")
        await page.run("document.querySelector('#chart').focus()")
        told = "document.querySelector('.told').textContent"
        assert "Turn 6, request 2" in await page.run(told)
        await page.press("PageUp")
        assert "Turn 6, request 1" in await page.run(told)
        assert "Before it: Turn 2 left the model's view." in await page.run(told)
        await page.press("Home")
        assert "Turn 1, request 1" in await page.run(told)
        chosen = await page.run("document.querySelector('#chart').getAttribute('aria-activedescendant')")
        assert chosen == "request-0"
        assert page.errors == []


@pytest.mark.system
@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 1280), (False, 360), (True, 360)])
async def test_it_fits_its_window_in_both_colours(tmp_path: Path, dark: bool, width: int) -> None:
    async with gateway(tmp_path, *reading(120)) as stage, browser(tmp_path / "profile") as page:
        for number in range(9):
            await ask(stage.session, f"Look into the notes once more, for question {number}")
        await opened(page, stage)
        await page.until("document.querySelectorAll('.turn-card').length === 9")
        await page.look(tmp_path / "shot.png", dark=dark, width=width)
        assert (tmp_path / "shot.png").stat().st_size > 20_000
        assert await page.run("document.documentElement.scrollWidth") <= width
        paint = await page.run("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", paint)[:3])) > 380
        assert light is not dark
        assert page.errors == []


@pytest.mark.system
async def test_an_update_moves_neither_the_page_nor_the_picture_of_who_looks_back(tmp_path: Path) -> None:
    chart = "document.querySelector('#chart')"
    async with gateway(tmp_path, *reading()) as stage, browser(tmp_path / "profile") as page:
        for number in range(20):
            await ask(stage.session, f"Prompt {number}")
        await opened(page, stage)
        await page.until("document.querySelectorAll('.request').length === 40")
        await page.size(360)
        # With less room bars are narrower, and the newest request stays in view.
        await page.until("document.querySelector('.chart svg').clientWidth < 360")
        await page.until(f"{chart}.scrollLeft > 0 && {chart}.scrollLeft + {chart}.clientWidth >= 340")
        await page.run(f"{chart}.focus()")
        await page.press("Home")
        await page.run("document.querySelector('#transcript').scrollIntoView()")
        top = "Math.round(document.querySelector('#transcript').getBoundingClientRect().top)"
        before, left = await page.run(top), await page.run(f"{chart}.scrollLeft")
        await ask(stage.session, "One more")
        await page.until("document.querySelectorAll('.request').length === 42")
        assert abs(await page.run(top) - before) <= 2
        assert await page.run(f"{chart}.scrollLeft") == left
        assert await page.run(f"{chart}.getAttribute('aria-activedescendant')") == "request-0"


@pytest.mark.system
async def test_a_page_without_a_session_is_no_longer_than_its_window(tmp_path: Path) -> None:
    async with gateway(tmp_path, *reading()) as stage, browser(tmp_path / "profile") as page:
        await page.open(stage.address)
        await ask(stage.session, "How long is notes.txt?")
        await page.until("document.querySelector('.sessions a')")
        await page.size(1280)
        assert await page.run("document.documentElement.scrollHeight") == 900
        await page.run("document.querySelector('.sessions a').click()")
        await page.until("document.querySelector('.tool pre')")
        paint = "getComputedStyle(document.querySelector('{}')).backgroundColor"
        assert await page.run(paint.format(".tool pre")) != await page.run(paint.format(".card"))


@pytest.mark.system
async def test_in_a_narrow_window_the_way_back_leads_to_where_it_began(tmp_path: Path) -> None:
    async with gateway(tmp_path, *reading()) as stage, browser(tmp_path / "profile") as page:
        await page.size(360)
        await opened(page, stage)
        await page.until("document.activeElement.tagName === 'H1'")
        await page.run("document.querySelector('.back').focus()")
        await page.press("Enter")
        await page.until("document.activeElement.matches('.sessions a')")
        await page.run("location.hash = '#/session/a%2Fb'")
        await page.until("document.querySelector('#main').textContent.startsWith('There is no such session')")


@pytest.mark.system
async def test_it_looks_again_when_somebody_comes_back(tmp_path: Path) -> None:
    async with gateway(tmp_path, *reading()) as stage, browser(tmp_path / "profile") as page:
        await opened(page, stage)
        stage.state.app.sessions.clear()
        await stage.state.app.store().delete_session(stage.session.session_id)
        assert await page.run("document.querySelectorAll('.sessions a').length") == 1
        await page.run("document.dispatchEvent(new Event('visibilitychange'))")
        await page.until("document.querySelectorAll('.sessions a').length === 0")
        await page.until("document.querySelector('#main').textContent.startsWith('There is no such session')")
        assert await page.run("document.querySelector('#list [role=status]').textContent.includes('run')")


@pytest.mark.system
async def test_it_comes_back_behind_the_last_event_after_its_stream_was_cut(tmp_path: Path) -> None:
    feed = "document.querySelector('#feed').dataset.state"
    async with gateway(tmp_path, *reading()) as stage, browser(tmp_path / "profile") as page:
        await ask(stage.session, "before")
        await opened(page, stage)
        await ask(stage.session, "seen")
        await page.until("document.querySelectorAll('.turn-card').length === 2")
        while stage.streams:
            stage.streams.pop()()
        await page.until(f"{feed} === 'lost'")
        await ask(stage.session, "missed")
        await page.until(f"{feed} === 'live'")
        await page.until("document.querySelectorAll('.turn-card').length === 3")
        assert [headers["Last-Event-ID"] for headers in page.headers if "Last-Event-ID" in headers]


@pytest.mark.system
async def test_without_the_token_it_asks_for_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, *reading()) as stage, browser(tmp_path / "profile") as page:
        await page.open(f"http://{stage.host}/")
        await page.until("document.activeElement.id === 'token'")
        await page.run(f"document.querySelector('#token').value = {json.dumps(TOKEN)}")
        await page.press("Enter")
        await page.until("document.querySelector('.sessions a')")
        assert page.errors == []


# ---------------------------------------------------------------- the files alone


def test_the_files_need_nothing_from_elsewhere_and_hold_no_inline_code() -> None:
    files = {path.name: path.read_text() for path in serve.FOLDER.iterdir()}
    for name, text in files.items():
        assert len(text.splitlines()) < 300, name
        outside = re.findall(r"https?://(?!www\.w3\.org/(?:2000/svg|1999))\S*|@import|innerHTML|eval\(", text)
        assert outside == [], name
    page = files["index.html"]
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    used = set(re.findall(r"/static/([\w.]+)", page)) | {
        found for text in files.values() for found in re.findall(r'from "\./([\w.]+)"', text)
    }
    assert used == set(files) - {"index.html"}


async def test_files_are_served_as_what_they_are_and_kept_by_the_browser() -> None:
    async with desk() as client:
        page = await client.http.get("/")
        code = await client.http.get("/static/app.js")
        again = await client.http.get("/static/app.js", headers={"if-none-match": code.headers["etag"]})
        other = await client.http.get("/static/dashboard.py")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert code.headers["content-type"] == "text/javascript; charset=utf-8"
    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 404
