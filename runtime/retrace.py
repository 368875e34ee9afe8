"""What each recorded request weighed, out of the steps: the turns kept then, collapsed as they were.

Unlike `replay` it may begin anywhere, compares nothing and makes no request; unlike `simulate` it decides
nothing: what left is what was recorded as left. Pure. Figures are estimates, as they were then.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from runtime.cutting import cut_as_recorded
from runtime.history.budget import effective_context_budget, trim_target
from runtime.history.counter import token_counter
from runtime.history.load import CallShape, Load, weigh
from runtime.history.moved import moved
from runtime.history.narrow import narrowed
from runtime.history.turns import History
from runtime.portions import Portions, portions
from runtime.record import Iteration, TurnRecord
from runtime.replay import Frame, frame_of
from runtime.restore import change_in, iteration_rows, runtime_rows, turn_rows
from schemas.transcript import ContextStep, RequestRecord, SetupStep, TrimStep


@dataclass(frozen=True, slots=True)
class Traced:
    """A provider call. Tokens; call: of its turn, from 0. used: as the provider was taken to count it;
    reported: as it did.

    trims_above, window: None where they are not known. trims: ids of the notices before it.
    """

    call: int
    shares: Portions
    estimated: int
    used: int
    reported: int | None
    collapsed: int
    kept: int
    trims_above: int | None = None
    window: int | None = None
    trims: tuple[str, ...] = ()
    dropped_turns: int = 0
    dropped_messages: int = 0


@dataclass(slots=True)
class Retrace:
    """Feed it with records in order, from any on. history: as it was before the first of them."""

    history: History = field(default_factory=History)
    _frames: dict[str, Frame] = field(default_factory=dict)
    _frame: Frame | None = None

    def know(self, step: SetupStep) -> None:
        """Take in what requests were composed under."""
        self._frames[step.digest] = frame_of(step)

    def missing(self, turn: TurnRecord) -> set[str]:
        """The digests of the setups that its requests name and nobody has given yet."""
        own = {step.digest for step in turn.setups}
        records = (it.reply.request for it in turn.iterations if it.reply is not None)
        return {one.setup for one in records if one is not None} - own - self._frames.keys()

    def add(self, turn: TurnRecord) -> Iterator[Traced]:
        """The calls of the next record. Take them all."""
        for step in turn.setups:
            self.know(step)
        rows = turn_rows(turn, folded=False)
        if not rows or (turn.end is not None and turn.end.outcome == "no_model"):
            self._cut([*turn.trims(), *turn.trims_after])
            return
        self.history.open_turn(turn.turn_id, rows[0])
        appended = 1
        for number, iteration in enumerate(turn.iterations):
            said = runtime_rows(iteration)
            self.history.append(said)
            if iteration.shown() is not None:
                yield self._traced(number, iteration)
            last = number + 1 == len(turn.iterations)
            done = [] if last else list(iteration_rows(replace(iteration, runtime=[]), ""))
            self.history.append(done)
            appended += len(said) + len(done)
        self.history.append(rows[appended:])
        self.history.close_turn()
        self._cut(turn.trims_after)

    def _cut(self, trims: list[TrimStep]) -> None:
        self.history = cut_as_recorded(self.history, trims)

    def _traced(self, number: int, iteration: Iteration) -> Traced:
        reply = iteration.shown()
        assert reply is not None
        if reply.request is not None:
            self._take_up(reply.request)
        self._cut(iteration.trims)
        for step in iteration.contexts:
            if (change := change_in(step)) is not None:
                self.history = narrowed(self.history, change).history
        load = self._weigh(reply.request)
        reported = reply.usage.input_tokens if reply.usage is not None else 0
        told: list[TrimStep | ContextStep] = [*iteration.trims]
        told += [step for step in iteration.contexts if step.trim_id]
        target, window = self._limits()
        return Traced(
            number,
            portions(load.history, load.older, load.messages, load.fixed),
            load.messages + load.fixed,
            load.request_tokens(),
            reported or None,
            load.older,
            self.history.turn_count,
            target,
            window,
            tuple(one.trim_id for one in told),
            sum(trim.dropped_turns for trim in iteration.trims),
            sum(one.dropped_messages for one in told),
        )

    def _weigh(self, record: RequestRecord | None) -> Load:
        frame = self._frame
        if frame is None:
            return weigh(self.history, CallShape(), 2**31)
        specs = frame.native_specs if record is None or record.tools else ()
        calibration = 1.0 if record is None else record.calibration
        names = frozenset(spec.name for spec in frame.specs)
        shape = CallShape(specs, names, calibration=calibration)
        return weigh(self.history, shape, frame.profile.keep_tool_context_turns)

    def _limits(self) -> tuple[int | None, int | None]:
        if self._frame is None:
            return None, None
        budget = effective_context_budget(self._frame.profile, self._frame.route)
        return trim_target(budget, self._frame.route), budget.reported_window

    def _take_up(self, record: RequestRecord) -> None:
        """Go on under the setup of a record, if it is known."""
        frame = self._frames.get(record.setup)
        if frame is None:
            return
        counter = token_counter(frame.step.counter)
        if counter != self.history.shared.counter:
            self.history = moved(self.history, counter)
        self.history.set_system(frame.step.system)
        self._frame = frame
