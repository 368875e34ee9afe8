"""Sessions, turns and histories. `Agent` runs them in a program of your own; importing this loads none of it.

`__init__.pyi` beside it tells type checkers what there is.
"""

from importlib import import_module

__all__ = ["Agent", "Answer", "FunctionTool"]


def __getattr__(name: str) -> object:
    """What embedders use, loaded when it is first asked for."""
    if name in __all__:
        return getattr(import_module("runtime.agent"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
