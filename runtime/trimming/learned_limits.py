"""What a provider's counts and refusals teach of the model in use. Decides nothing that is sent.

It is kept with the route (`profiles.Route`), for as long as that is used, and beside the transcript
(`runtime.transcript.session_state`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from runtime.history.request.budget import CAPACITY_MARGIN
from runtime.history.request.compose import Composed, calibration_ratio, silent_cut
from runtime.values.events import Event, Noticed
from runtime.values.profiles import Route

_ALIKE = 0.1
"""Two counts that differ by a smaller share show the same limit."""


@dataclass(slots=True)
class Refusals:
    """Refusals without a known cause, in a row. fitted: requests of the session were taken before. tried:
    less was asked for because of them, which did not help so far.
    """

    in_a_row: int = 0
    fitted: bool = False
    tried: bool = False

    @property
    def repeated(self) -> bool:
        """It came at least twice, where requests were taken before."""
        return self.fitted and self.in_a_row > 1

    def add(self) -> bool:
        """Count one more; whether less is to be asked for. Once only: turns may not go with each refusal."""
        self.in_a_row += 1
        first, self.tried = not self.tried, self.tried or self.repeated
        return self.repeated and first

    def end(self) -> None:
        """A request was taken."""
        self.in_a_row, self.fitted, self.tried = 0, True, False


@dataclass(slots=True)
class Counts:
    """How far the provider's count and ours are apart, and what it showed that was cut. For one route.

    calibration: reported / estimated. cut_to: what was left of a prompt when that was last told, 0 for never.
    disproved: a window was inferred, and then more was taken than that; none is inferred any more.
    """

    calibration: float = 1.0
    cut_to: int = 0
    disproved: bool = False

    async def take(
        self, composed: Composed, reported: int, route: Route, emit: Callable[[Event], Awaitable[None]]
    ) -> Route:
        """Believe a count of input tokens, above 0; the route as it is known then. A cut is told once, and
        again when it is another.
        """
        notice = silent_cut(composed, reported)
        if notice is None:
            self.calibration = calibration_ratio(reported, composed.raw_tokens)
            return self._doubted(route, reported)
        known = route if self.disproved else inferred(route, reported)
        if not alike(self.cut_to, reported):
            self.cut_to = reported
            await emit(_told(notice, known))
        return known

    def _doubted(self, route: Route, reported: int) -> Route:
        if not route.window_inferred or reported <= (route.learned_window or 0):
            return route
        self.disproved = True
        return replace(route, learned_window=None, window_inferred=False)


def inferred(route: Route, reported: int) -> Route:
    """The route with the window that showed when the provider left that much of a longer prompt."""
    known = route.learned_window or 0
    if (
        reported <= CAPACITY_MARGIN
        or alike(known, reported)
        or (reported > known > 0 and not route.window_inferred)
    ):
        return route
    return replace(route, learned_window=reported, window_inferred=True)


def named(route: Route, window: int | None) -> Route:
    """The route with the window that an error named; the same for None."""
    return route if window is None else replace(route, learned_window=window, window_inferred=False)


def alike(one: int, other: int) -> bool:
    """Whether two counts show the same limit."""
    return abs(one - other) <= one * _ALIKE


def _told(notice: Noticed, route: Route) -> Noticed:
    if not route.window_inferred or (route.context_window or 0) > 0:
        return notice
    kept = f"From now on requests are kept to the {route.learned_window} that it took."
    return replace(notice, description=f"{notice.description} {kept}")
