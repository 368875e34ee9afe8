"""A stand-in for xllamacpp that plays events: its module, its parameters, its server."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from runtime.providers.local.engine import Engine

PROGRESS = {"choices": [{"index": 0, "delta": {}}], "prompt_progress": {"processed": 32}}


def text_event(text: str, finish: str | None = None) -> dict[str, object]:
    """A chunk with a piece of text."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def usage_event(read: int, written: int) -> dict[str, object]:
    """The chunk with the figures."""
    return {"choices": [], "usage": {"prompt_tokens": read, "completion_tokens": written}}


def error_event(code: int, kind: str, message: str) -> dict[str, object]:
    """What the library hands out in place of an answer."""
    return {"error": {"code": code, "type": kind, "message": message}}


HELLO = (text_event("Hel"), text_event("lo"), text_event("", "stop"), usage_event(10, 5))


@dataclass
class FakeServer:
    """Plays `events` at each request. hang: goes on with events that say nothing, until it is told to end.

    like_the_real: swallows what the callback raises.
    """

    events: Sequence[object] = HELLO
    hang: bool = False
    refusal: Exception | None = None
    listening_address: str = "http://127.0.0.1:1"
    bodies: list[dict[str, Any]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def handle_chat_completions(self, body: bytes, callback: Callable[[bytes], bool]) -> None:
        self.bodies.append(json.loads(body))
        if self.refusal:
            raise self.refusal
        try:
            for event in self.events:
                if callback(json.dumps(event, ensure_ascii=False).encode()):
                    return
            while self.hang and not callback(json.dumps(PROGRESS).encode()):
                threading.Event().wait(0.002)
        except Exception:  # noqa: BLE001 - as the real one
            return
        finally:
            self.ended.set()

    def engine(self, *, native_tools: bool = False) -> Engine:
        """An engine around it."""
        return Engine(self, n_ctx=2048, native_tools=native_tools)


def fake_library(server: FakeServer | Exception, device: int = 0) -> SimpleNamespace:
    """The module. server: what its `Server` makes, or raises; the parameters are kept in `given`."""
    library = SimpleNamespace(given=[])

    def make(params: object) -> FakeServer:
        library.given.append(params)
        if isinstance(server, Exception):
            raise server
        return server

    def parameters() -> SimpleNamespace:
        parts = {name: SimpleNamespace() for name in ("model", "cpuparams", "cpuparams_batch")}
        return SimpleNamespace(**parts)

    library.Server, library.CommonParams = make, parameters
    library.get_device_info = lambda: [{"type": device}]
    library.ggml_backend_dev_type = SimpleNamespace(
        GGML_BACKEND_DEVICE_TYPE_GPU=1, GGML_BACKEND_DEVICE_TYPE_IGPU=2
    )
    return library
