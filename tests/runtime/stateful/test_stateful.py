"""A session driven at random: prompts, tools, faults, overflows, cancels, switches, reloads, crashes.

After each step `stateful.World` compares what is kept, announced, stored and sent.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from runtime.values.profiles import Profile, Route
from tests.runtime.stateful.stateful import World
from tests.support.fakes import call, prompt

Part = dict[str, object]
Parts = list[Part]
EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "25"))
STEPS = 12

profiles = st.builds(
    Profile,
    max_history_messages=st.sampled_from([None, 0, 1, 2, 3, 5]),
    history_unit=st.sampled_from(["turns", "turns", "messages"]),
    max_context_tokens=st.sampled_from([None, 0, 60, 400, 1500, 6000]),
    keep_tool_context_turns=st.integers(0, 2),
    max_tool_result_chars=st.sampled_from([0, 90, 50_000]),
    max_tool_iterations=st.sampled_from([1, 2, 10]),
    running_turn_overflow=st.sampled_from(["fail", "shorten"]),
    trim_slack_ratio=st.sampled_from([0.0, 0.2, 0.9]),
)
routes = st.builds(
    Route,
    st.just("scripted"),
    st.sampled_from(["test-model", "other"]),
    st.sampled_from([None, None, 700, 2500, 32_000]),
    st.sampled_from([None, None, 100, 5000]),
)
TAILS = {
    "plain": "",
    "cjk": " 历史管理のテスト🔥" * 9,
    "lines": "\nsecond line",
    "large": " x" * 800,
    "huge": " y" * 6000,
    "picture": " [IMAGE:/a.png]",
}
tails = st.sampled_from(sorted(TAILS))
heads = st.sampled_from(
    ["p", "p", "p", "[Tool results] p", "[earlier turns omitted to fit the context window] p", "/local "]
)
spoken = st.sampled_from(["", "fine", "好的" * 30, "z" * 900, "[Tool results]\nno", " "])
asked = st.builds(
    call,
    st.sampled_from(["ok", "fail", "break", "long " * 300, "日本語" * 40]),
    id=st.sampled_from(["", "c1", "c1", "c2", "c1_2"]),
)
odd = st.sampled_from(
    [{"name": "nope", "arguments": {}}, {"name": "echo", "arguments": "{broken", "id": "c1"}]
)
native_rounds = st.builds(
    lambda calls, text, thought: {"calls": calls, "text": text, "thought": thought},
    st.lists(st.one_of(asked, asked, odd), min_size=1, max_size=3),
    st.sampled_from(["", "let me see"]),
    st.sampled_from(["", "hm"]),
)
WRITTEN = '<tool_call>{"name": "echo", "arguments": {"text": "%s"}}</tool_call>'
written_rounds = st.sampled_from(
    [
        {"text": WRITTEN % "ok"},
        {"text": f"see {WRITTEN % 'one'} and {WRITTEN % 'fail'}"},
        {"text": ["so <tool_", "call>{broken}</tool_call>"]},
    ]
)
usages = st.sampled_from([None, None, {"input": 40, "output": 5}, {"input": 3000, "output": 5}])
finals = st.builds(
    lambda text, usage, stop: {"text": text, "usage": usage, "stop": stop},
    spoken,
    usages,
    st.sampled_from(["end", "length", "refusal"]),
)
faults = st.sampled_from(
    [
        {"text": "half", "drop": True},
        {"drop": True},
        {"error": {"status": 429, "message": "Rate limit reached"}},
        {"error": {"status": 500}},
        {"text": "half", "error": {"status": 500}},
        {"calls": [call("ok", id="c1")], "drop": True},
        {"error": {"status": 400, "message": "This model's maximum context length is 900 tokens."}},
        {"error": {"status": 400, "code": "context_length_exceeded", "message": "prompt is too long"}},
        {"error": {"status": 413}},
    ]
)


class SessionMachine(RuleBasedStateMachine):
    """One session."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.prompts = 0

    def text(self, head: str, tail: str) -> str:
        """A prompt that no other one equals."""
        self.prompts += 1
        return "/local" if head.startswith("/local") else f"{head}{self.prompts}{TAILS[tail]}"

    def rounds(self, native: Parts, written: Parts) -> Parts:
        """Tool rounds as the model of now makes them."""
        return written if self.world.prompt_tools else native

    @initialize(profile=profiles, route=routes, prompt_tools=st.booleans())
    def start(self, profile: Profile, route: Route, prompt_tools: bool) -> None:
        self.world.profile, self.world.route, self.world.prompt_tools = profile, route, prompt_tools
        self.world.run(self.world.start)

    @rule(
        head=heads,
        tail=tails,
        native=st.lists(native_rounds, max_size=3),
        written=st.lists(written_rounds, max_size=3),
        final=finals,
        limit=st.sampled_from([0, 0, 0, 500, 1500, 4000]),
    )
    def ask(self, head: str, tail: str, native: Parts, written: Parts, final: Part, limit: int) -> None:
        replies = [*self.rounds(native, written), final, {"text": "done", "repeat": True}]
        self.world.serve(*replies, limit_tokens=limit)
        self.world.run(lambda: self.world.ask(self.text(head, tail)))

    @rule(
        head=heads,
        tail=tails,
        native=st.lists(native_rounds, max_size=2),
        written=st.lists(written_rounds, max_size=2),
        fault=faults,
    )
    def meet_a_fault(self, head: str, tail: str, native: Parts, written: Parts, fault: Part) -> None:
        self.world.serve(*self.rounds(native, written), fault, {"text": "done", "repeat": True})
        self.world.run(lambda: self.world.ask(self.text(head, tail)))

    @rule(
        head=heads,
        tail=tails,
        native=st.lists(native_rounds, max_size=1),
        text=spoken,
        waiting=st.integers(0, 2),
    )
    def cancel_while_it_speaks(self, head: str, tail: str, native: Parts, text: str, waiting: int) -> None:
        self.world.serve(*self.rounds(native, []), {"text": text, "hang": True, "repeat": True})
        behind = [self.text("p", "plain") for _ in range(waiting)]
        first = self.text(head, tail)
        self.world.run(lambda: self.world.interrupt(first, self.world.session.cancel, *behind))

    @rule(head=heads, others=st.lists(asked, max_size=2))
    def cancel_in_a_tool(self, head: str, others: Parts) -> None:
        self.world.serve(*self.hanging_tool(others), {"text": "done", "repeat": True})
        first = self.text(head, "plain")
        self.world.run(lambda: self.world.interrupt(first, self.world.session.cancel))

    def hanging_tool(self, others: Parts) -> Parts:
        """A round with a tool that never ends."""
        if self.world.prompt_tools:
            return [{"text": WRITTEN % "wait"}]
        return [{"calls": [*others, call("wait", id="w")]}]

    @rule(head=heads)
    def cancel_at_once(self, head: str) -> None:
        world, text = self.world, self.text(head, "plain")
        world.serve({"text": "done", "repeat": True})

        async def stopped() -> None:
            world.expect_join(text)
            ticket = world.session.submit(prompt(text))
            world.session.cancel()
            assert await world.session.run(ticket) == "cancelled"

        world.run(stopped)

    @rule(profile=profiles, route=routes, prompt_tools=st.booleans())
    def switch(self, profile: Profile, route: Route, prompt_tools: bool) -> None:
        world = self.world
        world.profile, world.route, world.prompt_tools = profile, route, prompt_tools
        world.switch()

    @rule()
    def reload(self) -> None:
        self.world.run(self.world.reload)

    @rule(head=heads, tail=tails, in_tool=st.booleans(), text=spoken)
    def crash(self, head: str, tail: str, in_tool: bool, text: str) -> None:
        last = self.hanging_tool([]) if in_tool else [{"text": text, "hang": True}]
        self.world.serve(*last)
        first = self.text(head, tail)
        self.world.run(lambda: self.world.crash(first))


TestSession = SessionMachine.TestCase
TestSession.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
