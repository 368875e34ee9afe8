"""The baselines of a start: an interpreter that imports what a server of this kind cannot do without.

usage: bench_imports.py light|whole     prints one line when it is ready

light: trio, orjson and a fixed list of the standard library. whole: the same with pydantic and the HTTP
client that the product uses. Neither holds a line of the product: the lists do not follow what that imports.
"""

import importlib
import sys

STANDARD = ("json", "sqlite3", "tomllib", "dataclasses", "logging", "re", "pathlib", "uuid", "hashlib")
LIGHT = ("trio", "orjson", *STANDARD)
WHOLE = (*LIGHT, "pydantic", "httpx2")


def main(kind: str) -> None:
    """Import them, and print a line out of a run of trio."""
    for name in {"light": LIGHT, "whole": WHOLE}[kind]:
        importlib.import_module(name)
    trio = sys.modules["trio"]

    async def ready() -> None:
        await trio.lowlevel.checkpoint()
        sys.stdout.buffer.write(sys.modules["orjson"].dumps({"ready": kind}) + b"\n")
        sys.stdout.buffer.flush()

    trio.run(ready)


if __name__ == "__main__":
    main(sys.argv[1])
