"""`ScriptedProvider` is here for programs; it is loaded when it is first asked for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.providers.scripted.provider import ScriptedProvider as ScriptedProvider


def __getattr__(name: str) -> object:
    if name == "ScriptedProvider":
        from runtime.providers.scripted.provider import ScriptedProvider

        return ScriptedProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
