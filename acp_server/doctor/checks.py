"""All checks in their order. Knows what needs readable settings and what asks others; prints nothing."""

from collections.abc import Callable, Iterator

from acp_server.doctor.finding import Finding, Place, Read
from acp_server.doctor.machine import check_command, check_helpers, check_python, check_start, check_terminal
from acp_server.doctor.model import check_answer, check_model
from acp_server.doctor.settings import (
    check_effects,
    check_extras,
    check_origins,
    check_servers,
    check_trust,
    read_settings,
)
from acp_server.doctor.store import check_store

OF_SETTINGS: tuple[Callable[[Read], Iterator[Finding]], ...] = (
    check_origins,
    check_effects,
    check_extras,
    check_model,
    check_store,
    check_servers,
    check_trust,
)


def findings(place: Place, *, offline: bool, seconds: float) -> Iterator[Finding]:
    """Everything, as it is found. offline: nobody is asked. seconds: that the model has for an answer."""
    yield from check_python()
    yield from check_command(place)
    yield from check_helpers(place)
    yield from check_terminal(place)
    read, told = read_settings(place)
    yield from told
    if read is not None:
        for check in OF_SETTINGS:
            yield from check(read)
        if not offline:
            yield from check_answer(read, seconds)
    yield from check_start(place)
