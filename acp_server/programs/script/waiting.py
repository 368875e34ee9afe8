"""The steps that wait for frames: expect, until, any_order, none."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from acp_server.programs.script import steps
from acp_server.programs.script.match import Difference, compare
from acp_server.programs.script.stage import Failed, Stage, value_of
from acp_server.programs.script.steps import Awaited


class _Near:
    """Of all frames that did not match, the one that came nearest: what a report should show."""

    def __init__(self) -> None:
        self.difference: Difference | None = None
        self.frame: object = None

    def see(self, difference: Difference, frame: object) -> None:
        if self.difference is None or difference.agreed >= self.difference.agreed:
            self.difference, self.frame = difference, frame

    def failure(self, problem: str) -> Failed:
        return Failed(problem, difference=self.difference, frame=self.frame)


async def expect(stage: Stage, action: steps.Expect) -> None:
    """The next frame, optional ones aside."""
    with _limit(stage, action.timeout, lambda: Failed("no frame came within {} s")):
        await _next(stage, [action.awaited])
    stage.optional.clear()


async def any_order(stage: Stage, action: steps.AnyOrder) -> None:
    """The next frames; done as soon as all that must come have come."""
    left = list(action.members)

    def late() -> Failed:
        missing = sum(1 for member in left if member.required)
        return Failed(f"{missing} of {len(action.members)} did not come within {{}} s")

    with _limit(stage, action.timeout, late):
        while any(member.required for member in left):
            left.remove(await _next(stage, left))
    stage.optional.clear()


async def until(stage: Stage, action: steps.Until) -> None:
    """Frames are skipped until one matches."""
    near = _Near()
    with _limit(stage, action.timeout, lambda: near.failure("no matching frame came within {} s")):
        while True:
            value = await _frame(stage, near)
            result = compare(stage.fill_pattern(action.awaited.pattern), value)
            if not isinstance(result, Difference):
                await stage.accept(action.awaited, result, value)
                break
            near.see(result, value)
            if not await _take_optional(stage, value):
                stage.skip(value)
    stage.optional.clear()


async def nothing(stage: Stage, action: steps.Nothing) -> None:
    """All frames that wait and that come are looked at and left where they are."""
    agent = await stage.running()
    pattern, ahead = stage.fill_pattern(action.pattern), 0
    with trio.move_on_after(action.seconds):
        while (item := await agent.inbox.peek(ahead)) is not None:
            value = value_of(item)
            ignored = stage.first_match(stage.ignored, value)
            if ignored is not None and ahead == 0:
                await stage.accept(ignored[0], ignored[1], value)
                continue
            if ignored is None and not isinstance(compare(pattern, value), Difference):
                raise Failed("a frame came that must not come", frame=value)
            ahead += 1


async def _frame(stage: Stage, near: _Near) -> object:
    """As `next_frame`; at the end of the agent's output the nearest frame is shown."""
    try:
        return await stage.next_frame()
    except Failed as failure:
        if failure.frame is None and near.difference is not None:
            raise near.failure(failure.problem) from None
        raise


async def _next(stage: Stage, choices: list[Awaited]) -> Awaited:
    """Take the next frame that is not optional: it must match one of the choices. Gives that one."""
    while True:
        value = await stage.next_frame()
        found = stage.first_match(choices, value)
        if found is not None:
            await stage.accept(found[0], found[1], value)
            return found[0]
        if not await _take_optional(stage, value):
            raise _nearest(stage, choices, value)


async def _take_optional(stage: Stage, value: object) -> bool:
    found = stage.first_match(stage.optional, value)
    if found is None:
        return False
    stage.optional.remove(found[0])
    await stage.accept(found[0], found[1], value)
    return True


def _nearest(stage: Stage, choices: list[Awaited], value: object) -> Failed:
    near = _Near()
    for choice in choices:
        result = compare(stage.fill_pattern(choice.pattern), value)
        if isinstance(result, Difference):
            near.see(result, value)
    many = "" if len(choices) == 1 else f" (none of the {len(choices)} that are waited for)"
    return near.failure(f"another frame came{many}")


@contextmanager
def _limit(stage: Stage, timeout: float | None, late: Callable[[], Failed]) -> Iterator[None]:
    seconds = timeout or stage.options.timeout
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        failure = late()
        failure.problem = failure.problem.format(f"{seconds:g}")
        raise failure from None
