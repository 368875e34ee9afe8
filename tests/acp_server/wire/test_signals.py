"""Which signals end a server or a turn at a terminal."""

import signal
from collections.abc import Iterator

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from acp_server.cli.run.run import cancel_on_interrupt
from acp_server.wire.streams import ending_signals
from tests.support.fakes import ask, make_session, script

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def hangup() -> Iterator[None]:
    """The handler of SIGHUP is afterwards what it was."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup")
def test_who_was_started_to_live_on_without_a_terminal_does() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert ending_signals() == (signal.SIGINT, signal.SIGTERM)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    assert ending_signals() == ENDING


@pytest.mark.parametrize("number", ENDING)
async def test_each_ends_a_turn_at_a_terminal(number: signal.Signals) -> None:
    """As `wholeturn run` has it: the turn is cancelled, so that its end is recorded."""
    ends: list[str] = []
    # An outer receiver: should it be missed, the test fails and not the whole run.
    with trio.open_signal_receiver(number), trio.fail_after(10):
        session, _, _ = await make_session(script({"hang": True}))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_on_interrupt, session)

            async def turn() -> None:
                ends.append(await ask(session, "go"))
                nursery.cancel_scope.cancel()

            nursery.start_soon(turn)
            await wait_all_tasks_blocked()
            signal.raise_signal(number)
    assert ends == ["cancelled"]
