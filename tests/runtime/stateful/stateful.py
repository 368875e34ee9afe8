"""A session under watch: each request is looked at as it is sent, each step's end against the transcript.

The transcript is what is right: the live history must be a suffix of it in whole turns, and what is missing
must have been announced. Nothing here knows by which rule a turn goes.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.conversation.conversation import Conversation
from runtime.conversation.load_and_fork import read_state, replay, restore, stored_history
from runtime.history.live.history import History
from runtime.history.request.compose import compose
from runtime.history.request.digest import request_digest
from runtime.history.rows.notice import BREADCRUMB_TEXT, Reason
from runtime.history.rows.pairs import pairs_ok
from runtime.history.rows.structured import rows_from_entries
from runtime.replay.stored_session import replay_session
from runtime.session.session import Session
from runtime.store.memory import MemoryStore
from runtime.transcript.restore import turn_rows
from runtime.transcript.turn_record import read_turns
from runtime.values.errors import ContextWindowExceeded, WholeturnError
from runtime.values.events import AgentText, AgentThought, Event, HistoryTrimmed, ToolCallStarted, UserMessage
from runtime.values.model import ModelRequest, Part
from runtime.values.profiles import Profile, Route
from runtime.values.rows import Row
from runtime.values.stored import SessionRecord
from schemas.transcript import TrimStep
from tests.support.fakes import TIME, EchoTool, RecordingClient, ask, make_setup, script

TOOL_RESULTS = "[Tool results]"
PROBE = Row("user", "probe")


def whole_turns(trims: Sequence[HistoryTrimmed]) -> list[HistoryTrimmed]:
    """The notices of turns that went, not those of results that were only shortened."""
    return [trim for trim in trims if trim.dropped_turns]


@dataclass(slots=True)
class Watched:
    """A provider that hands each request over before another one answers it."""

    inner: object
    look: Callable[[ModelRequest], None]
    name: str = "scripted"

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Sequence[Part]]]:
        self.look(request)
        async with self.inner.stream(request) as parts:  # type: ignore[attr-defined]
            yield parts

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@dataclass(slots=True)
class World:
    """One session over its whole life: reloads and crashes replace what runs, never what is stored."""

    store: MemoryStore = field(default_factory=MemoryStore)
    profile: Profile = field(default_factory=Profile)
    route: Route = field(default_factory=lambda: Route("scripted", "test-model", 32_000))
    prompt_tools: bool = False
    talk: Conversation = field(init=False)
    session: Session = field(init=False)
    client: RecordingClient = field(init=False)
    earlier: list[Event] = field(default_factory=list)
    """What clients before the last restart saw."""
    problems: list[str] = field(default_factory=list)
    joined: set[str] = field(default_factory=set)
    """Recorded prompts that stand in the turn before them."""
    trims_seen: int = 0
    sent: list[str] = field(default_factory=list)

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """One step in a time of its own; whatever hangs ends it."""

        async def bounded() -> None:
            with trio.fail_after(1000):
                await work()
                await self.check()

        trio.run(bounded, clock=MockClock(autojump_threshold=0))

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """A new session."""
        await self.store.create_session(SessionRecord("s", "/project", TIME, TIME))
        await self.open()

    async def open(self) -> None:
        """The session of the store in a new process, so to speak."""
        record = await self.store.session("s")
        assert record is not None
        self.client = RecordingClient()
        self.talk = Conversation(
            "s", Path("/project"), self.setup(), self.store, self.client, state=read_state(record.state)
        )
        self.trims_seen = 0
        await restore(self.talk)
        self.trims_seen = len(self.client.trims())
        assert self.trims_seen <= 1
        self.session = Session(self.talk)

    async def reload(self) -> None:
        """Close and load again."""
        await self.session.close()
        self.earlier += self.client.events
        await self.open()

    def setup(self, *replies: object, **more: object):
        """What the session runs with now."""
        provider = Watched(script(*replies or ({"text": "x"},), **more), self.look)
        made = make_setup(provider, self.profile, [EchoTool()], prompt_tools=self.prompt_tools)
        return replace(made, route=self.route)

    def serve(self, *replies: object, **more: object) -> None:
        """The next prompts are answered by these replies; what was learned of the route stays."""
        self.talk.keeper.setup = self.setup(*replies, **more)
        self.trims_seen = len(self.client.trims())

    def switch(self) -> None:
        """Go on with another profile, route or kind of tools."""
        self.talk.keeper.use(self.setup())

    async def ask(self, text: str) -> None:
        """A prompt to its end, well or not."""
        self.expect_join(text)
        await self.attempt(text)

    async def attempt(self, text: str) -> None:
        """The same, where it is known already what becomes of it."""
        with suppress(WholeturnError):
            await ask(self.session, text)

    def expect_join(self, text: str) -> None:
        """Remember whether the next recorded prompt joins the turn before it."""
        if text.startswith(TOOL_RESULTS) and self.talk.keeper.history.current is not None:
            self.joined.add(text)

    async def interrupt(self, text: str, stop: Callable[[], None], *behind: str) -> None:
        """A prompt that hangs and others behind it, stopped after a second."""
        async with trio.open_nursery() as nursery:
            for each in (text, *behind):
                self.expect_join(each)
                nursery.start_soon(self.attempt, each)
                await wait_all_tasks_blocked()
            await trio.sleep(1)
            stop()

    async def crash(self, text: str) -> None:
        """The process dies in a turn that hangs: what was stored by then is all there is."""
        copied = MemoryStore()
        shown: list[Event] = []
        async with trio.open_nursery() as nursery:
            self.expect_join(text)
            nursery.start_soon(self.attempt, text)
            await trio.sleep(1)
            record = await self.store.session("s")
            assert record is not None
            await copied.create_session(record)
            await copied.append("s", await self.store.entries("s", limit=1_000_000))
            shown += self.client.events
            nursery.cancel_scope.cancel()
        self.store, self.earlier = copied, self.earlier + shown
        await self.open()

    # ------------------------------------------------------------ what is looked at

    def look(self, request: ModelRequest) -> None:
        """A request as it goes out."""
        self.sent.append(request_digest(request))
        rows, history = request.rows(), self.talk.keeper.history
        trims = self.client.trims()
        self.expect(pairs_ok(rows), "pairs are whole and ids unique")
        self.expect([row.role for row in rows].count("system") == 1, "one system row")
        self.expect(rows[0].role == "system", "the system row is first")
        gone = bool(whole_turns(self.all_trims()))
        marked = rows[1].content == BREADCRUMB_TEXT and rows[1].origin is None
        self.expect(history.crumb_present == gone, "the flag is set exactly when something was dropped")
        self.expect(marked or not gone, "the breadcrumb stands where something was dropped")
        self.expect(len(trims) - self.trims_seen <= 1, "at most one notice before a request")
        self.trims_seen = len(trims)
        assert history.current is not None
        newest = [row for row in history.current.rows if row.content.strip() or row.tool_calls]
        sent = rows[-len(newest) :]
        whole = [(row.role, row.content) for row in newest] == [(row.role, row.content) for row in sent]
        shortened = self.profile.running_turn_overflow == "shorten"
        same = [row.role for row in newest] == [row.role for row in sent] and newest[0] == sent[0]
        self.expect(whole or (shortened and same), "the newest turn is whole")

    def expect(self, holds: bool, what: str) -> None:
        """Remember what does not hold; a request is no place to fail in."""
        if not holds:
            self.problems.append(what)

    def all_events(self) -> list[Event]:
        """What all clients saw."""
        return [*self.earlier, *self.client.events]

    def all_trims(self) -> list[HistoryTrimmed]:
        """All notices."""
        return [event for event in self.all_events() if isinstance(event, HistoryTrimmed)]

    async def check(self) -> None:
        """After a step: history, notices, transcript and a reload agree."""
        assert self.problems == []
        assert len(self.client.trims()) - self.trims_seen <= 1
        await self.check_ledger()
        self.check_ids()
        await self.check_transcript()
        await self.check_replay()
        await self.check_reload()

    async def check_ledger(self) -> None:
        """The kept rows are a suffix of whole turns; every row before them was announced."""
        history = self.talk.keeper.history
        recorded = [
            (turn.turn_id, turn_rows(turn)) async for turn in read_turns(self.store, "s") if turn_rows(turn)
        ]
        ids = [turn_id for turn_id, _ in recorded]
        kept = [turn.turn_id for turn in history.turns]
        start = ids.index(kept[0]) if kept else len(ids)
        live = [row for turn in history.turns for row in turn.rows]
        assert live == [row for _, rows in recorded[start:] for row in rows]
        opened = [turn_id for turn_id, rows in recorded if rows[0].content not in self.joined]
        assert [turn_id for turn_id in ids[start:] if turn_id in opened] == kept
        trims = whole_turns(self.all_trims())
        gone = sum(len(rows) for _, rows in recorded[:start])
        told = sum(trim.dropped_messages for trim in trims)
        # A notice of both kinds also counts the results that were shortened.
        both = any(trim.reason == Reason.SHORTENED for trim in trims)
        assert told >= gone if both else told == gone
        assert sum(trim.dropped_turns for trim in trims) == len(opened) - len(kept)
        assert history.crumb_present == bool(trims)
        for turn in history.turns:
            assert rows_from_entries(turn.entries) == list(turn.rows)

    def check_ids(self) -> None:
        """Nothing is named twice."""
        started = [event.call_id for event in self.all_events() if isinstance(event, ToolCallStarted)]
        trims = [trim.trim_id for trim in self.all_trims()]
        assert max(Counter(started).values(), default=0) <= 1
        assert max(Counter(trims).values(), default=0) <= 1

    async def check_transcript(self) -> None:
        """A replay shows every text and call that was shown; every notice is in the store."""
        again = Conversation("s", Path("/project"), self.setup(), self.store, RecordingClient())
        await replay(again)
        assert isinstance(again.client, RecordingClient)
        assert texts(again.client.events) == texts(self.all_events())
        assert calls(again.client.events) == calls(self.all_events())
        asked = [event.block["text"] for event in again.client.events if isinstance(event, UserMessage)]
        turns = [turn async for turn in read_turns(self.store, "s") if turn.prompt is not None]
        assert asked == [turn.prompt.text for turn in turns if turn.prompt is not None]
        entries = await self.store.entries("s", limit=1_000_000)
        stored = [TrimStep.model_validate_json(entry.payload) for entry in entries if entry.kind == "trim"]
        assert [(step.trim_id, step.dropped_messages, step.dropped_turns) for step in stored] == [
            (trim.trim_id, trim.dropped_messages, trim.dropped_turns) for trim in self.all_trims()
        ]

    async def check_replay(self) -> None:
        """Each recorded request is made again from the steps, as it went out."""
        async with aclosing(replay_session(self.store, "s")) as made:
            again = [one.call.digest async for one in made if one.call is not None]
        # A request whose answer broke off is recorded twice, with the failure and with what was shown; one
        # that was under way in a crash is not recorded.
        sent = iter(self.sent)
        assert all(digest in sent for digest in singly(again))

    async def check_reload(self) -> None:
        """A history made from the store gives the same next request as the live one."""
        record = await self.store.session("s")
        assert record is not None
        keeper = self.talk.keeper
        assert read_state(record.state) == keeper.state
        other = Conversation("s", Path("/project"), self.setup(), self.store, self.client, state=keeper.state)
        assert self.next_rows(await stored_history(other)) == self.next_rows(copy(keeper.history))

    def next_rows(self, history: History) -> list[Row] | str:
        """What the next prompt would send."""
        keeper = self.talk.keeper
        # What a turn leaves behind when the next one begins stays out of the history under test.
        shared = history.shared
        history.shared = replace(shared, first_use=dict(shared.first_use), numbers=dict(shared.numbers))
        history.open_turn("probe", PROBE)
        tools = keeper.native_specs
        try:
            composed = compose(
                history,
                self.profile,
                keeper.route,
                tools,
                callable_tools={"echo"},
                calibration=keeper.calibration,
            )
        except ContextWindowExceeded as error:
            return str(error)
        assert not composed.healed
        ledger = composed.ledger()
        assert ledger.recorded == ledger.sent + ledger.collapsed + ledger.swept
        return composed.rows()


def singly(digests: Sequence[str]) -> list[str]:
    """Without those that follow an equal one."""
    return [digest for digest, before in zip(digests, ["", *digests], strict=False) if digest != before]


def texts(events: Sequence[Event]) -> dict[str, str]:
    """What was said, by message id; thoughts too."""
    out: dict[str, str] = {}
    for event in events:
        if isinstance(event, AgentText | AgentThought):
            out[event.message_id] = out.get(event.message_id, "") + event.text
    return out


def calls(events: Sequence[Event]) -> dict[str, str]:
    """The calls that were shown, by id: their names."""
    return {event.call_id: event.name for event in events if isinstance(event, ToolCallStarted)}
