"""A stored session read in order: every provider call made again, or what each recorded request weighed.

The former is `replay_session`. The latter, `Retrace`, may begin anywhere, compares nothing and makes no
request; unlike `simulate` it decides nothing: what left is what was recorded as left. What fills a request is
told in five portions that make its whole; figures are estimates, as they were then. Knows the Store port.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from runtime.conversation.load_and_fork import used_call_ids
from runtime.history.live.history import History
from runtime.history.live.without_parts import narrowed
from runtime.history.request.budget import effective_context_budget, trim_target
from runtime.history.request.meter import CallShape, Load, current_face, weigh
from runtime.history.request.trims import moved
from runtime.history.rows.token_counter import token_counter
from runtime.replay.compare import cut_as_recorded
from runtime.replay.replay import Frame, Remade, Replay, frame_of
from runtime.transcript.restore import change_in, iteration_rows, runtime_rows, turn_rows
from runtime.transcript.stored_history import Surroundings, first_kept_entry, read_history
from runtime.transcript.turn_record import Iteration, TurnRecord, read_turns
from runtime.values.stored import Store
from schemas.transcript import ContextStep, ExpandStep, RequestRecord, SessionState, SetupStep, TrimStep


@dataclass(frozen=True, slots=True)
class Replayed:
    """A call of the turn with that number, made again; or, without one, the turn itself, behind its calls.

    trims: how many there were for the turn. unrecorded: calls of the turn that could not be compared.
    """

    number: int
    turn_id: str
    call: Remade | None = None
    trims: int = 0
    unrecorded: int = 0


async def replay_session(store: Store, session_id: str) -> AsyncGenerator[Replayed, None]:
    """Every call of every turn, in order. Raises Difference at the first that is not what was recorded.

    Holds one turn and the history that was kept at that time. Close it (aclosing) when it is left early.
    """
    replay, number = Replay(), 0
    async with aclosing(read_turns(store, session_id)) as turns:
        async for turn in turns:
            number += turn.prompt is not None
            before = replay.unrecorded
            for call in replay.add(turn):
                yield Replayed(number, turn.turn_id, call)
            if turn.expand is not None:
                replay.bring_back(await as_expanded(store, session_id, turn, turn.expand, replay.history))
            if turn.prompt is not None:
                trims = len(turn.trims()) + len(turn.trims_after)
                yield Replayed(number, turn.turn_id, trims=trims, unrecorded=replay.unrecorded - before)


async def as_expanded(
    store: Store, session_id: str, at: TurnRecord, step: ExpandStep, history: History
) -> History:
    """The history with the turns that came back at that record."""
    state = SessionState(
        first_turn_id=step.first_turn_id,
        held=step.held,
        history_has_trim_breadcrumb=step.dropped_turns > 0,
        notes=history.beside.notes_text if step.dropped_turns else "",
    )
    first = await first_kept_entry(store, session_id, state)
    taken = await used_call_ids(store, session_id, first)
    around = Surroundings(history.system.leading, history.shared.counter, history.system.late, taken)
    made = await read_history(store, session_id, state, around, first=first, before=at.first_seq)
    made.beside = replace(made.beside, goal=history.beside.goal, pins=history.beside.pins)
    return made


@dataclass(frozen=True, slots=True)
class Portions:
    """Tokens, uncalibrated. fixed: system prompt and tools; beside: breadcrumb and notes; older: collapsed
    turns; whole: turns sent whole; running: the newest turn.
    """

    fixed: int
    beside: int
    older: int
    whole: int
    running: int


def portions(history: History, collapsed: int, messages: int, fixed: int) -> Portions:
    """The portions of a request with this history.

    collapsed: how many of its oldest turns are; messages: tokens of all rows; fixed: of what is no row.
    """
    system = history.system.piece.tokens if history.system.piece is not None else 0
    beside = (history.beside.crumb.tokens if history.crumb_present else 0) + history.beside.notes_tokens
    faces = history.collapse.faces
    older = sum(faces[index].tokens for index in range(collapsed))
    running = current_face(history).tokens
    whole = messages - system - beside - older - running
    return Portions(system + fixed, beside, older, whole, running)


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
