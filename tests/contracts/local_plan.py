"""The provider of local models around a scripted library, for the contract."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from runtime.ports import Provider
from runtime.providers.local.provider import LocalProvider
from runtime.providers.settings import ProviderSettings
from tests.contracts.plans import Plan
from tests.runtime.providers.local.fake_llama import FakeServer, error_event, text_event, usage_event

FINISH = {"end": "stop", "tool_calls": "tool_calls", "length": "length", "refusal": "content_filter"}


def _events(plan: Plan) -> list[object]:
    if plan.status:
        return [error_event(plan.status, "", "no")]
    events: list[object] = []
    if plan.thought:
        events.append({"choices": [{"index": 0, "delta": {"reasoning_content": plan.thought}}]})
    events += map(text_event, plan.pieces)
    for index, (ident, name, arguments) in enumerate(plan.calls):
        call = {"index": index, "id": ident, "function": {"name": name, "arguments": arguments}}
        events.append({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    if plan.ending == "stop":
        events += [text_event("", FINISH[plan.stop]), usage_event(*plan.usage)]
    return events


def _store_model(folder: Path) -> None:
    folder.mkdir()
    (folder / "m.gguf").write_bytes(b"GGUF")


@asynccontextmanager
async def local(plan: Plan) -> AsyncIterator[Provider]:
    """A model whose template knows tools, so that calls come as the plan states them."""
    server = FakeServer(_events(plan), hang=plan.ending == "hang")
    with TemporaryDirectory() as folder:
        _store_model(Path(folder, "models"))
        model = LocalProvider(
            ProviderSettings("one", "local", model="m"),
            start=lambda _: server.engine(native_tools=True),
            environ={"WHOLETURN_DATA_DIR": folder},
        )
        yield model
        await model.aclose()
