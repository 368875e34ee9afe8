"""The baseline of a start: imports what a server of this kind cannot do without, and uses each a little.

Prints one line when it is ready. The libraries are those of the product, jsonrpcserver without its package
module (which would pull in a schema validator and an HTTP server that nobody asked for).
"""

import importlib
import importlib.util
import sqlite3
import sys

import orjson
import pydantic
import trio


def import_lean(package: str, *modules: str) -> None:
    """Import submodules of a package whose own `__init__` is left unrun."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    sys.modules[package] = importlib.util.module_from_spec(spec)
    for module in modules:
        importlib.import_module(f"{package}.{module}")


class Part(pydantic.BaseModel):
    """A model inside a model."""

    kind: str
    text: str


class Message(pydantic.BaseModel):
    """The one model that is built and used."""

    session: str
    parts: list[Part]
    note: str | None = None


async def ready() -> None:
    """One line, once everything is there."""
    message = Message.model_validate({"session": "s", "parts": [{"kind": "text", "text": "hello"}]})
    sqlite3.connect(":memory:").close()
    await trio.lowlevel.checkpoint()
    sys.stdout.buffer.write(orjson.dumps(message.model_dump()) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    import_lean("jsonrpcserver", "dispatcher", "result", "response", "exceptions")
    trio.run(ready)
