"""What is recorded of each provider call, so that a replay can make it again. Writes nothing itself."""

from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache

import orjson

from runtime.history.request.digest import RequestDigests, text_digest
from runtime.setup.session_setup import Setup
from runtime.trimming.model_context import HistoryKeeper
from runtime.trimming.refused_request import TooLong
from runtime.values.errors import ProviderError
from runtime.values.model import ModelRequest
from runtime.values.profiles import Route
from schemas.session_state import GoalRecord
from schemas.transcript import AttemptStep, RequestRecord, RouteRecord, SetupStep, SizesRecord


class RequestLog:
    """The records of one session's calls. What they were composed under is made once for each change."""

    def __init__(self) -> None:
        self._made: tuple[Setup, Route, GoalRecord | None, SetupStep] | None = None
        self._given: set[str] = set()
        self._digests = RequestDigests()

    def record(
        self, keeper: HistoryKeeper, request: ModelRequest, *, tools: bool
    ) -> Callable[[], RequestRecord]:
        """What gives the record of a request that is about to be sent. tools: whether they were offered.

        It is made when it is first asked for, best while the model works: the request need not wait for it.
        """
        setup, calibration, beside = self._setup(keeper).digest, keeper.calibration, keeper.history.beside
        goal, pins = beside.goal, tuple(sorted(beside.pins))

        @lru_cache(maxsize=1)
        def made() -> RequestRecord:
            return RequestRecord(
                setup=setup,
                digest=self._digests.digest(request),
                rows=sum(len(segment.rows) for segment in request.segments),
                calibration=calibration,
                tools=tools,
                goal=goal,
                pins=pins,
            )

        return made

    def new_setup(self, keeper: HistoryKeeper) -> SetupStep | None:
        """What the next request is composed under, the first time: to be stored before it is sent."""
        step = self._setup(keeper)
        if step.digest in self._given:
            return None
        self._given.add(step.digest)
        return step

    def _setup(self, keeper: HistoryKeeper) -> SetupStep:
        made, goal = self._made, keeper.state.goal
        if made is None or made[0] is not keeper.setup or made[1] is not keeper.route or made[2] is not goal:
            step = setup_step(keeper.setup, keeper.route, keeper.system)
            made = self._made = keeper.setup, keeper.route, goal, step
        return made[3]


def setup_step(setup: Setup, route: Route, system: tuple[str, ...]) -> SetupStep:
    """A setup as it is recorded. route: the one in use, with what was learned of it. system: the leading
    rows.
    """
    facts = SetupStep(
        digest="",
        route=RouteRecord(**asdict(route)),
        profile=asdict(setup.profile),
        system=system,
        tools=tuple((spec.name, spec.description, spec.parameters) for spec in setup.specs),
        prompt_tools=setup.prompt_tools,
        counter=setup.counter.name,
    )
    text = orjson.dumps(facts.model_dump(), option=orjson.OPT_SORT_KEYS).decode()
    return facts.model_copy(update={"digest": text_digest(text)})


def attempt_step(
    error: ProviderError, request: RequestRecord, refusal: TooLong | None, *, pictures: bool = False
) -> AttemptStep:
    """A call that failed, as it is recorded. refusal: for its size, and a smaller one follows. pictures:
    refused for the pictures in the prompt.
    """
    if refusal is None:
        return AttemptStep(error=error.message, request=request, pictures=pictures)
    sizes = refusal.sizes
    window = 0 if sizes.limits_output else sizes.limit or 0
    return AttemptStep(
        error=error.message,
        learned_window=window,
        overflow=SizesRecord(**asdict(sizes)),
        request=request,
        share=refusal.share,
    )
