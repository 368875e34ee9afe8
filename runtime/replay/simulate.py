"""What a recorded session would have sent under other limits, request by request. Asks no model, no tool.

The replies and results are the recorded ones, so this tells what the model would have seen, not what it
would have said. Sizes are estimates. Trims that only a provider's own figures cause (a refusal, a count
after a reply) are not played; a summary is taken to be as long as it may be.
"""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import asdict, dataclass, field, replace

from runtime.history.live.history import History
from runtime.history.live.without_parts import narrowed
from runtime.history.request.compose import Composed, compose
from runtime.history.rows.notice import TrimNotice
from runtime.history.rows.token_counter import token_counter
from runtime.history.rows.tool_rounds import LoopView, tool_rounds
from runtime.ports import ContextTrimmer
from runtime.replay.stored_session import portions
from runtime.transcript.restore import iteration_rows, outcome, runtime_rows, turn_rows
from runtime.transcript.turn_record import Iteration, TurnRecord
from runtime.trimming.tool_rounds import BadView, asked, change_of, iteration_of
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row, ToolSpec
from schemas.transcript import SetupStep

BEGINNING = 80
"""Characters of a prompt that say which turn is meant."""


@dataclass(frozen=True, slots=True)
class Gone:
    """What left before a request. turns: number and first words of each whole turn."""

    reason: str
    strategy: str
    messages: int
    turns: tuple[tuple[int, str], ...] = ()
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it would have been. Tokens: their parts make `total`.

    turn: number of its prompt; call: of the turn, from 0. fixed: system prompt and tools; beside: breadcrumb
    and notes; older: collapsed turns; whole: turns sent whole; running: the turn itself. collapsed: how many
    turns are.
    over: it would not have fitted the window.
    """

    turn: int
    call: int
    prompt: str
    fixed: int
    beside: int
    older: int
    whole: int
    running: int
    target: int
    window: int
    collapsed: int
    gone: tuple[Gone, ...] = ()
    over: bool = False

    @property
    def total(self) -> int:
        """All of it."""
        return self.fixed + self.beside + self.older + self.whole + self.running


@dataclass(slots=True)
class Simulation:
    """Feed it with all records of a session, in order. trimmer: for the rounds inside a turn, None for
    none.
    """

    profile: Profile
    route: Route
    trimmer: ContextTrimmer | None = None
    history: History = field(default_factory=History)
    number: int = 0
    _tools: tuple[ToolSpec, ...] = ()
    _names: dict[str, tuple[int, str]] = field(default_factory=dict)

    async def add(self, turn: TurnRecord) -> AsyncGenerator[Request, None]:
        """The requests of the next record. Take them all."""
        for step in turn.setups:
            self._take_up(step)
        if turn.prompt is None:
            return
        self.number += 1
        if not turn_rows(turn) or outcome(turn) == "no_model":
            return
        rows = turn_rows(turn, folded=False)
        prompt = " ".join(turn.prompt.text.split())[:BEGINNING]
        self._names[self.history.open_turn(turn.turn_id, rows[0])] = self.number, prompt
        appended = 1
        for call, iteration in enumerate(turn.iterations):
            said = runtime_rows(iteration)
            self.history.append(said)
            if iteration.shown() is not None:
                yield await self._request(call, prompt)
            done = list(rest(iteration, last=call + 1 == len(turn.iterations)))
            self.history.append(done)
            appended += len(said) + len(done)
        self.history.append(rows[appended:])
        self.history.close_turn()

    def _take_up(self, step: SetupStep) -> None:
        if token_counter(step.counter) != self.history.shared.counter and not self.history.turn_count:
            self.history = History(counter=token_counter(step.counter))
        self.history.set_system(step.system)
        self._tools = () if step.prompt_tools else tuple(ToolSpec(*tool) for tool in step.tools)

    async def _request(self, call: int, prompt: str) -> Request:
        gone = [one async for one in self._narrow(prompt)]
        before = self.history
        made = compose(before, self.profile, self.route, self._tools, check_capacity=False)
        self.history = made.history
        gone += [self._gone(notice, before) for notice in made.trims]
        return self._told(made, call, prompt, tuple(gone))

    async def _narrow(self, prompt: str) -> AsyncGenerator[Gone, None]:
        turn = self.history.current
        if self.trimmer is None or turn is None or not (rounds := tool_rounds(turn.repaired.rows)):
            return
        rows, prices = turn.repaired.rows, turn.prices_of(turn.repaired.rows)
        given = [
            iteration_of(number, rows[one.start : one.end], prices[one.start : one.end])
            for number, one in enumerate(rounds)
        ]
        try:
            made = narrowed(self.history, change_of(given, await asked(self.trimmer, given, prompt)))
        except BadView:
            return
        seen = self.history.marks.view or LoopView()
        self.history = made.history
        if left := made.dropped_rows or made.overwritten:
            now = made.history.marks.view or seen
            reason = f"loop context trimmed: {now.omitted} rounds of this turn are out of view"
            yield Gone(reason, self.trimmer.name, left)

    def _gone(self, notice: TrimNotice, before: History) -> Gone:
        kept = {turn.turn_id for turn in self.history.turns}
        lost = [turn.turn_id for turn in before.turns if turn.turn_id not in kept]
        tokens = notice.tokens
        return Gone(
            notice.reason,
            notice.strategy,
            notice.dropped_messages,
            tuple(self._names.get(turn_id, (0, "")) for turn_id in lost),
            tokens.before if tokens else None,
            tokens.after if tokens else None,
        )

    def _told(self, made: Composed, call: int, prompt: str, gone: tuple[Gone, ...]) -> Request:
        shares = portions(
            made.history, made.collapsed_turns, made.message_tokens, made.raw_tokens - made.message_tokens
        )
        return Request(
            self.number,
            call,
            prompt,
            **asdict(shares),
            target=made.target,
            window=made.budget.window,
            collapsed=made.collapsed_turns,
            gone=gone,
            over=made.estimated_tokens > made.budget.window,
        )


def rest(iteration: Iteration, *, last: bool) -> Iterator[Row]:
    """What a finished provider call leaves in the turn; of the last one the turn's end decides."""
    return iter(()) if last else iteration_rows(replace(iteration, runtime=[]), "")
