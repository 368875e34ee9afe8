"""What a `kind = "local"` section means, checked once: pure. Knows no model and no library."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from runtime.providers.http_settings import Check, as_table, chosen, flag, members, tokens
from runtime.providers.local_models import DEFAULT_MODEL
from runtime.providers.openai_request import OWN_MEMBERS
from runtime.providers.settings import LOCAL_WINDOW, ProviderSettings

SMALLEST_N_CTX = 256
MOST_THREADS = 8
"""More wait for each other and for the memory."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """n_ctx: tokens of the window that the model is started with. guided_tools: None lets the model decide.

    extra: members of every request's body.
    """

    n_ctx: int = LOCAL_WINDOW
    n_threads: int = 1
    guided_tools: bool | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


def read(settings: ProviderSettings) -> LocalSettings:
    """The section's options. Raises ConfigError that names the key."""
    options = chosen(settings, OPTIONS)
    guided = options.get("guided_tools")
    return LocalSettings(
        n_ctx=int(str(options.get("n_ctx") or settings.context_window or LOCAL_WINDOW)),
        n_threads=int(str(options.get("n_threads") or default_threads())),
        guided_tools=None if guided is None else bool(guided),
        extra=as_table(options.get("extra_body")) or {},
    )


def model_name(settings: ProviderSettings, asked: str = "") -> str:
    """The model to run: the one a request asks for, the section's, or the one that can be pulled."""
    return asked or settings.model or DEFAULT_MODEL


def default_threads() -> int:
    """One core stays free: where the editor takes a core from the model, its other threads wait, spinning."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores - 1, MOST_THREADS))


def _threads(settings: ProviderSettings, name: str, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 512:
        raise settings.problem(name, "must be a whole number of threads, at least 1")
    return value


OPTIONS: Mapping[str, Check] = {
    "n_ctx": tokens(SMALLEST_N_CTX),
    "n_threads": _threads,
    "guided_tools": flag,
    "extra_body": members(OWN_MEMBERS | {"response_format", "return_progress"}),
}
