"""Sessions, turns and histories. `Agent` runs them in a program of your own; importing this loads none of it.

`__init__.pyi` beside it tells type checkers what there is.
"""

from pathlib import Path

__all__ = ["Agent", "Answer", "AsyncioAgent", "FunctionTool", "TrioThread", "on_loop"]

# Programs import `runtime.model` and a few more by the names that earlier releases documented.
__path__.append(str(Path(__file__).parent / "embed" / "former_names"))


def __getattr__(name: str) -> object:
    """What embedders use, loaded when it is first asked for."""
    if name in ("Agent", "Answer", "FunctionTool"):
        from runtime.embed import agent

        return getattr(agent, name)
    if name == "AsyncioAgent":
        from runtime.embed.asyncio_agent import AsyncioAgent

        return AsyncioAgent
    if name in ("TrioThread", "on_loop"):
        from runtime.embed import trio_thread

        return getattr(trio_thread, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
