"""Checks of the model: that there is one, that its key is there, that it answers."""

from collections.abc import Iterator

import trio

from acp_server.assembly.providers_and_stores import try_once
from acp_server.config.secrets import KeyedEnviron, is_stored, showable
from acp_server.doctor.finding import Finding, Read
from runtime.providers import catalog
from runtime.providers.local.model_files import missing, models_dir
from runtime.providers.settings import ProviderSettings
from runtime.values.errors import (
    AuthRequired,
    ConfigError,
    ProviderError,
    ProviderErrorKind,
    WholeturnError,
    find_error,
)

SETUP = "Run `wholeturn setup`."
MENDS = {
    ProviderErrorKind.AUTH: "The key was refused: run `wholeturn setup`, or set the variable to another.",
    ProviderErrorKind.TIMEOUT: "Try again; if it stays, ask whoever runs the server, or give --timeout.",
}
UNREACHABLE = "Check the address, the network and whether the server runs; `--offline` leaves this out."


def check_model(read: Read) -> Iterator[Finding]:
    """Whether an agent has something to ask, and the key for it. Asks nobody."""
    agent = read.view.config.agent
    if agent.provider is None or agent.route is None:
        yield Finding("model", "bad", "No model is configured.", SETUP)
        return
    address = showable(("providers", agent.provider.name, "base_url"), agent.provider.base_url)
    where = f" at {address}" if address else ""
    yield Finding("model", "ok", f"{agent.route.id}, kind {agent.provider.kind}{where}")
    yield from _key(agent.provider, read)
    if agent.provider.kind == "local":
        lacking = missing(agent.provider.model, models_dir(read.place.env))
        if lacking:
            yield Finding("model", "bad", lacking, "Run `wholeturn models pull`.")


def _key(provider: ProviderSettings, read: Read) -> Iterator[Finding]:
    variable = provider.api_key_env
    if not variable:
        yield Finding("key", "ok", f"{provider.name} wants no key")
    elif read.place.env.get(variable):
        yield Finding("key", "ok", f"{variable} is set (not shown)")
    else:
        yield _stored(variable, read)


def _stored(variable: str, read: Read) -> Finding:
    try:
        if is_stored(read.place.env, variable):
            return Finding("key", "ok", f"the key for {variable} is stored (not shown)")
    except ConfigError as error:
        return Finding("key", "bad", error.message, "Do what it says, then run `wholeturn setup`.")
    return Finding(
        "key",
        "bad",
        f"There is no key: {variable} is not set and none is stored.",
        f"Set it, or {SETUP[0].lower()}{SETUP[1:]}",
    )


def _has_key(provider: ProviderSettings, read: Read) -> bool:
    return all(finding.status == "ok" for finding in _key(provider, read))


def check_answer(read: Read, seconds: float) -> Iterator[Finding]:
    """Ask the model one word. Costs a few tokens; a model of this process is not loaded for it, and one whose
    key is missing is not asked: that has been told.
    """
    provider = read.view.config.agent.provider
    if provider is not None and provider.kind != "local" and _has_key(provider, read):
        yield trio.run(_asked, provider, read, seconds)


async def _asked(settings: ProviderSettings, read: Read, seconds: float) -> Finding:
    try:
        with trio.fail_after(seconds):
            await _ask(settings, read)
    except trio.TooSlowError:
        text = f"{settings.name} did not answer within {seconds:g} s."
        return Finding("answer", "bad", text, MENDS[ProviderErrorKind.TIMEOUT])
    except (WholeturnError, BaseExceptionGroup) as error:
        known = find_error(error)
        if known is None:
            raise
        return Finding("answer", "bad", known.message, _mend(known))
    return Finding("answer", "ok", f"{settings.name} answers")


async def _ask(settings: ProviderSettings, read: Read) -> None:
    provider = catalog.create(settings, KeyedEnviron(read.place.env))
    try:
        await try_once(provider, settings.model)
    finally:
        with trio.CancelScope(shield=True):
            await provider.aclose()


def _mend(error: WholeturnError) -> str:
    if isinstance(error, AuthRequired):
        return MENDS[ProviderErrorKind.AUTH]
    if isinstance(error, ConfigError):
        return "Mend the setting that is named."
    return MENDS.get(error.kind, UNREACHABLE) if isinstance(error, ProviderError) else UNREACHABLE
