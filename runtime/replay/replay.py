"""Makes the provider calls of recorded turns again, from their steps alone. Pure: no model, no tool.

The same functions decide here as in a live session; what they decided then is recorded, and is compared.
After the first difference nothing that follows means anything, so there is none behind it.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from runtime.history.live.history import History
from runtime.history.live.without_parts import blinded, narrowed
from runtime.history.request.compose import Composed, compose, with_notes
from runtime.history.request.recovery import recover
from runtime.history.request.trims import moved, trim_after_reply, without_newest
from runtime.history.rows.notice import Strategy, TrimNotice
from runtime.history.rows.overflow import Sizes
from runtime.history.rows.token_counter import token_counter
from runtime.replay.compare import Difference as Difference
from runtime.replay.compare import check_trims, compare, cut_as_recorded
from runtime.transcript.restore import change_in, iteration_rows, runtime_rows, turn_rows
from runtime.transcript.turn_record import Iteration, TurnRecord
from runtime.values.model import ModelRequest
from runtime.values.profiles import HistoryPruning, Profile, Route
from runtime.values.rows import Row, ToolSpec
from schemas.transcript import AttemptStep, RequestRecord, SetupStep, TrimStep

MANY = 2**32
"""More attempts than a call ever has."""


@dataclass(frozen=True, slots=True)
class Remade:
    """A provider call, made again and found to be the recorded one. attempt: from 1; iteration: from 0."""

    turn_id: str
    iteration: int
    attempt: int
    digest: str
    request: ModelRequest


@dataclass(frozen=True, slots=True)
class Frame:
    """What a call is composed under, as values again."""

    step: SetupStep
    profile: Profile
    route: Route
    specs: tuple[ToolSpec, ...]

    @property
    def native_specs(self) -> tuple[ToolSpec, ...]:
        """The tools of a request's own field."""
        return () if self.step.prompt_tools else self.specs


@dataclass(slots=True)
class Replay:
    """A session's history as it was, turn by turn. Feed it with all records, in order, from the first on.

    unrecorded: provider calls of which too little was kept to compare them (an older version's, or cut off).
    """

    history: History = field(default_factory=History)
    unrecorded: int = 0
    _frames: dict[str, Frame] = field(default_factory=dict)
    _frame: Frame | None = None
    _composed: Composed | None = None

    def add(self, turn: TurnRecord) -> Iterator[Remade]:
        """The calls of the next record. Take them all. Raises Difference."""
        for step in turn.setups:
            self._frames[step.digest] = frame_of(step)
        if turn.prompt is None:
            if any(trim.strategy == Strategy.SHORTEN and trim.rounds_cut is None for trim in turn.trims()):
                # In older records a session that is loaded cuts anew, from a turn that is whole.
                self.history.marks = replace(self.history.marks, rounds_cut=0)
            self._drop(turn.trims())
        elif turn.end is not None and turn.end.outcome == "no_model":
            self._drop([*turn.trims(), *turn.trims_after])
        else:
            yield from self._turn(turn)

    def bring_back(self, history: History) -> None:
        """Go on with a history in which dropped turns are back."""
        history.marks = self.history.marks
        self.history = history

    def _turn(self, turn: TurnRecord) -> Iterator[Remade]:
        if (first := first_request(turn)) is not None:
            # A live session has its setup before the turn; one that is taken back must not take that along.
            self._take_up(where(turn, 0), first)
        before = copy(self.history)
        self.history.open_turn(turn.turn_id, prompt_row(turn))
        appended = 1
        for number, iteration in enumerate(turn.iterations):
            said = runtime_rows(iteration)
            self.history.append(said)
            yield from self._calls(turn, number, iteration)
            done = []
            if number + 1 < len(turn.iterations):
                done = list(iteration_rows(replace(iteration, runtime=[]), ""))
            self.history.append(done)
            appended += len(said) + len(done)
        self._end(turn, before, appended)

    def _end(self, turn: TurnRecord, before: History, appended: int) -> None:
        """What the end of a turn leaves in the history, whatever ended it."""
        if turn.end is not None and turn.end.excluded:
            self.history.close_turn()
            self.history = without_newest(self.history, before)
            return
        self.history.append(turn_rows(turn, folded=False)[appended:])
        self.history.close_turn()
        reply = turn.iterations[-1].reply if turn.iterations else None
        if reply is None or reply.request is None:
            self._drop(turn.trims_after)
            return
        done = turn.end is not None and turn.end.outcome == "done"
        notices = self._trim_after(reply.usage.input_tokens) if done and reply.usage else []
        check_trims(where(turn, len(turn.iterations) - 1), notices, turn.trims_after)

    def _trim_after(self, reported: int) -> list[TrimNotice]:
        if self._composed is None or self._frame is None:
            return []
        self.history, notice = trim_after_reply(self._composed, self.history, reported, self._frame.profile)
        return [] if notice is None else [notice]

    def _calls(self, turn: TurnRecord, number: int, iteration: Iteration) -> Iterator[Remade]:
        """The calls of one iteration: those that failed, then the one that was answered."""
        refused: AttemptStep | None = None
        notices: list[TrimNotice] = []
        known = True
        records = [attempt.request for attempt in iteration.attempts]
        if (shown := iteration.shown()) is not None:
            records.append(shown.request)
        for index, record in enumerate(records):
            self._narrow(iteration, index, index)
            if record is None:
                # What a failed attempt has shown is kept as a reply of its own, and is no other call.
                self.unrecorded += not (index and shown is not None and shown.interrupted)
                known = False
                continue
            place = f"{where(turn, number)}, attempt {index + 1}"
            request = self._again(place, record, refused, iteration.trims[len(notices) :])
            notices += self._composed.trims if self._composed else ()
            compare(place, record, request)
            yield Remade(turn.turn_id, number, index + 1, record.digest, request)
            refused = iteration.attempts[index] if index < len(iteration.attempts) else None
        self._narrow(iteration, len(records), MANY)
        trims, rest = iteration.trims, iteration.trims[len(notices) :]
        if known and records:
            # A request that was cancelled or died before it had an answer is not recorded; its trims are.
            unanswered = len(records) == len(iteration.attempts)
            check_trims(where(turn, number), notices, trims[: len(notices)] if unanswered else trims)
            rest = rest if unanswered else []
        self._drop(rest)

    def _again(
        self, place: str, record: RequestRecord, refused: AttemptStep | None, trims: Sequence[TrimStep]
    ) -> ModelRequest:
        """The request of a record, from the history as it is now, which is left as the call left it.

        trims: as they were recorded for this request and those behind it.
        """
        before = self._frame
        frame = self._take_up(place, record)
        if refused is not None and refused.pictures:
            self.history = blinded(self.history, refused.error)
        specs = frame.native_specs if record.tools else ()
        if refused is not None and refused.overflow is not None and self._composed and before:
            composed = self._smaller(place, before, specs, refused)
        elif refused is not None and not refused.pictures and frame is before and self._composed:
            # Sent once more as it was, after a failure that had nothing to do with it.
            composed = replace(self._composed, trims=())
        else:
            composed = compose(
                self.history,
                frame.profile,
                frame.route,
                specs,
                callable_tools=frozenset(spec.name for spec in frame.specs),
                calibration=record.calibration,
                check_capacity=False,
            )
        if composed.trims and trims and trims[0].summary:
            composed = with_notes(composed, trims[0].summary, frame.route)
        self._composed, self.history = composed, composed.history
        return ModelRequest(frame.route.model, composed.segments, specs, composed.max_output_tokens)

    def _smaller(self, place: str, frame: Frame, specs: Sequence[ToolSpec], refused: AttemptStep) -> Composed:
        """What followed on a refusal for size. frame: of the refused call, before anything was learned."""
        assert self._composed is not None
        assert refused.overflow is not None
        assert refused.request is not None
        sizes = Sizes(**refused.overflow.model_dump())
        result = recover(
            self.history,
            frame.profile,
            frame.route,
            specs,
            refused=self._composed,
            error=sizes,
            calibration=refused.request.calibration,
            share=refused.share,
        )
        if result.composed is None:
            raise Difference(f"{place}: no smaller request can be made: {result.failure}")
        return result.composed

    def _take_up(self, place: str, record: RequestRecord) -> Frame:
        """Go on under the setup of a record."""
        frame = self._frames.get(record.setup)
        if frame is None:
            raise Difference(f"{place}: the setup {record.setup[:12]} it was made under is not stored")
        counter, old = token_counter(frame.step.counter), self._frame
        switched = old is not None and old.route.id != frame.route.id
        if switched or counter != self.history.shared.counter:
            self.history = moved(self.history, counter)
        self.history.set_system(frame.step.system)
        self.history.beside = replace(self.history.beside, goal=record.goal, pins=frozenset(record.pins))
        self._frame = frame
        return frame

    def _narrow(self, iteration: Iteration, first: int, last: int) -> None:
        """The passes of a context trimmer before those attempts, as they were recorded."""
        for step in iteration.contexts:
            change = change_in(step) if first <= step.attempt <= last else None
            if change is not None and self.history.current is not None:
                self.history = narrowed(self.history, change).history

    def _drop(self, trims: Sequence[TrimStep]) -> None:
        """Take out what was recorded as dropped, where it is not decided here again."""
        self.history = cut_as_recorded(self.history, trims)


def prompt_row(turn: TurnRecord) -> Row:
    """The row that the prompt was for the model, whatever became of the turn."""
    return turn_rows(TurnRecord(turn.turn_id, turn.first_seq, prompt=turn.prompt))[0]


def first_request(turn: TurnRecord) -> RequestRecord | None:
    """The first provider call of the turn that was recorded."""
    steps = (step for it in turn.iterations for step in (*it.attempts, it.reply) if step is not None)
    return next((step.request for step in steps if step.request is not None), None)


def frame_of(step: SetupStep) -> Frame:
    """A recorded setup as values; settings that this version does not know are left out."""
    known = {name: value for name, value in step.profile.items() if name in Profile.__dataclass_fields__}
    pruning = known.pop("history_pruning", None)
    # What a loop left out is recorded pass by pass.
    known.pop("loop_context", None)
    profile = Profile(**known)  # type: ignore[arg-type]  # as they were stored from one
    if isinstance(pruning, dict):
        profile = replace(profile, history_pruning=HistoryPruning(**pruning))
    specs = tuple(ToolSpec(*tool) for tool in step.tools)
    return Frame(step, profile, Route(**step.route.model_dump()), specs)


def where(turn: TurnRecord, number: int) -> str:
    """A call's place, for people."""
    return f"turn {turn.turn_id}, provider call {max(number, 0) + 1}"
