"""Sessions, turns and histories. `Agent` runs them in a program of your own; importing this loads none of it.

`__init__.pyi` beside it tells type checkers what there is.
"""

from importlib import import_module

__all__ = ["Agent", "Answer", "AsyncioAgent", "FunctionTool", "TrioThread", "on_loop"]

_PLACES = {"AsyncioAgent": "asyncio_agent", "TrioThread": "bridge", "on_loop": "bridge"}


def __getattr__(name: str) -> object:
    """What embedders use, loaded when it is first asked for."""
    if name in __all__:
        return getattr(import_module(f"runtime.{_PLACES.get(name, 'agent')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
