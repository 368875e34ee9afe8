"""Work that withstands a cancellation for a while."""

import pytest
import trio

from runtime.values.grace import withstanding


async def test_without_a_cancellation_there_is_no_limit(autojump_clock):
    async with withstanding(1):
        await trio.sleep(100)
    assert trio.current_time() >= 100


async def test_a_cancellation_counts_after_its_seconds(autojump_clock):
    began = trio.current_time()
    ended = 0.0
    with trio.move_on_after(10) as outer:
        async with withstanding(2) as inner:
            await trio.sleep(100)
        ended = trio.current_time() - began
        await trio.sleep(100)
    assert ended == pytest.approx(12)
    assert [inner.cancelled_caught, outer.cancelled_caught] == [True, True]
    assert trio.current_time() - began == pytest.approx(12)


async def test_what_ends_in_time_is_not_cut_short(autojump_clock):
    done = []
    with trio.CancelScope() as outer:
        outer.cancel()
        async with withstanding(2) as inner:
            await trio.sleep(1)
            done.append("worked")
        done.append("behind")
        await trio.lowlevel.checkpoint()
        done.append("never")
    assert done == ["worked", "behind"]
    assert not inner.cancelled_caught


@pytest.mark.parametrize("cancelled", [False, True])
async def test_an_error_comes_out_as_it_is(autojump_clock, cancelled):
    async def fail() -> None:
        async with withstanding(2):
            await trio.sleep(1)
            raise ValueError("why")

    with trio.CancelScope() as outer:
        if cancelled:
            outer.cancel()
        with pytest.raises(ValueError, match=r"^why$"):
            await fail()
