"""A real browser for tests: headless Chromium, driven over its DevTools protocol. Every wait is bounded.

What the page did beside what a test asked of it is kept: console messages, exceptions, requests.
"""

import base64
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any
from urllib.parse import urlsplit

import httpx2
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 30.0
KEYS = {
    "Tab": (9, ""), "Enter": (13, "\r"), "Home": (36, ""), "End": (35, ""), "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""), "PageUp": (33, ""), "PageDown": (34, ""),
}  # fmt: skip


class Page:
    """One tab. errors: what its console said of warnings and errors, and uncaught exceptions.

    requested, headers: the address and the headers of each request that it made.
    """

    def __init__(self, wire: WebSocketConnection) -> None:
        self.errors: list[str] = []
        self.requested: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._wire = wire
        self._number = 0
        self._waiting: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}

    async def listen(self) -> None:
        """Take in what the browser says, until it ends."""
        try:
            while True:
                self._take(json.loads(await self._wire.get_message()))
        except ConnectionClosed:
            return

    def _take(self, said: dict[str, Any]) -> None:
        if waiting := self._waiting.pop(said.get("id", 0), None):
            waiting.send_nowait(said)
        params = said.get("params", {})
        match said.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.errors.append(str(params["entry"]))
            case "Network.requestWillBeSent":
                self.requested.append(params["request"]["url"])
                self.headers.append(params["request"]["headers"])

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        """A command of the protocol, and its answer."""
        self._number += 1
        send, receive = trio.open_memory_channel[dict[str, Any]](1)
        self._waiting[self._number] = send
        await self._wire.send_message(json.dumps({"id": self._number, "method": method, "params": params}))
        with trio.fail_after(PATIENCE):
            answer = await receive.receive()
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, script: str) -> Any:
        """The value of an expression, once it counts as true."""
        found = None
        with trio.move_on_after(PATIENCE):
            while not (found := await self.run(f"(found => found instanceof Node || found)({script})")):
                await self.run("new Promise(requestAnimationFrame)")
        assert found, f"never true: {script}\n{self.errors}\n{await self.run('document.body.innerText')}"
        return found

    async def open(self, address: str) -> None:
        """Go there."""
        await self.ask("Page.navigate", url=address)
        await self.until("document.readyState === 'complete'")

    async def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key and let it go."""
        code, text = KEYS[key]
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        await self.ask("Input.dispatchKeyEvent", **down, **common)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **common)

    async def look(self, path: Path, *, dark: bool = False, width: int = 1280, height: int = 900) -> None:
        """A picture of the page, as far down as a window of that size shows it."""
        scheme = "dark" if dark else "light"
        await self.ask(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        await self.size(width, height)
        shot = await self.ask("Page.captureScreenshot")
        await trio.Path(path).write_bytes(base64.b64decode(shot["data"]))

    async def size(self, width: int, height: int = 900) -> None:
        """The window's size, in pixels."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        await self.run("new Promise(requestAnimationFrame)")

    def hosts(self) -> set[str]:
        """Whom the page asked for anything."""
        return {urlsplit(url).netloc for url in self.requested if not url.startswith("data:")}


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Page]:
    """A browser with one empty tab. profile: a folder for it alone."""
    program = next(found for name in NAMES if (found := shutil.which(name)))
    command = [
        program,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "about:blank",
    ]
    async with trio.open_nursery() as nursery:
        run = partial(trio.run_process, command, check=False, stdout=DEVNULL, stderr=PIPE)
        process: trio.Process = await nursery.start(run)
        assert process.stderr is not None
        try:
            port = await _port(process.stderr)
            nursery.start_soon(_drain, process.stderr)
            async with open_websocket_url(await _tab(port), max_message_size=1 << 26) as wire:
                page = Page(wire)
                nursery.start_soon(page.listen)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await page.ask(f"{domain}.enable")
                yield page
        finally:
            process.kill()
            nursery.cancel_scope.cancel()


async def _port(told: trio.abc.ReceiveStream) -> int:
    """Where the browser can be spoken to, once it says so."""
    text = b""
    with trio.fail_after(PATIENCE):
        while (found := re.search(rb"DevTools listening on ws://127\.0\.0\.1:(\d+)/", text)) is None:
            more = await told.receive_some()
            assert more, text
            text += more
    return int(found[1])


async def _drain(told: trio.abc.ReceiveStream) -> None:
    while await told.receive_some():
        pass


async def _tab(port: int) -> str:
    """The address of the one tab."""
    async with httpx2.AsyncClient() as http:
        targets = (await http.get(f"http://127.0.0.1:{port}/json/list")).json()
    return str(next(one["webSocketDebuggerUrl"] for one in targets if one["type"] == "page"))
