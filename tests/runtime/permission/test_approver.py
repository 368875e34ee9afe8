"""Questions: what is asked, what each answer does, and that nothing else ever allows a call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
import trio.testing

from runtime.permission.ask_person import LEAVE_PLAN, Approver, Decision
from runtime.permission.modes import ModeId
from runtime.permission.remembered_answers import Remembered
from runtime.permission.rules import Policy, parse_allow
from runtime.ports import PermissionOption, PermissionOutcome, ToolRequest
from runtime.values.events import FileDiff, ToolCallStarted
from tests.support.fakes import RecordingClient

ROOT = Path("/project")


def call(name: str = "run_command") -> ToolCallStarted:
    return ToolCallStarted("c", name, "a title", "execute", {"command": "npm test"})


def run(line: str) -> ToolRequest:
    return ToolRequest("execute", line, (ROOT,))


@dataclass
class Person(RecordingClient):
    """Answers in the order of `answers`, and notes how many questions are open at once."""

    answers: list[str] = field(default_factory=list)
    open: int = 0
    most_open: int = 0

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        await trio.testing.wait_all_tasks_blocked()
        self.answer = self.answers.pop(0) if self.answers else self.answer
        try:
            return await super().request_permission(session_id, call, options)
        finally:
            self.open -= 1


@dataclass(slots=True)
class Scene:
    approver: Approver
    client: Person
    modes: list[ModeId]

    async def ask(self, request: ToolRequest, name: str = "run_command") -> Decision:
        return await self.approver.approve(call(name), request)

    @property
    def questions(self) -> list[str]:
        return [str(event.content) for event, _ in self.client.asked]


def scene(*answers: str, mode: ModeId = "ask", kept: Path | None = None, allow: Sequence[str] = ()) -> Scene:
    client, modes = Person(answers=list(answers)), list[ModeId]()

    async def heard(new: ModeId) -> None:
        await trio.lowlevel.checkpoint()
        modes.append(new)

    policy = Policy(ROOT, tuple(map(parse_allow, allow)))
    remembered = None if kept is None else Remembered(kept, ROOT)
    return Scene(Approver("s", client, policy, remembered, mode=mode, on_mode=heard), client, modes)


async def test_what_is_allowed_or_denied_is_not_asked():
    it = scene(allow=["run_command:npm test*"])
    assert (await it.ask(run("npm test"))).allowed
    it.approver.put("plan")
    refused = await it.ask(run("npm test"))
    assert not refused.allowed
    assert "plan mode" in refused.why
    assert it.client.asked == []


async def test_the_question_shows_all_that_a_person_needs():
    it = scene()
    diff = FileDiff("/project/a", "x", "y")
    assert (await it.ask(run("npm test"))).allowed
    assert (await it.ask(ToolRequest("write", ".env", (ROOT / ".env",), secret=True, diffs=(diff,)))).allowed
    (first, options), (second, fewer) = it.client.asked
    assert (first.title, first.raw_input, first.content) == ("a title", {"command": "npm test"}, "npm test")
    assert [(option.kind, option.name) for option in options] == [
        ("allow_once", "Allow once"),
        ("allow_always", "Always allow `npm test …` in this project"),
        ("reject_once", "Reject"),
        ("reject_always", "Never allow `npm test …` in this project"),
    ]
    assert (second.diffs, second.content) == ((diff,), "Asked because the file may hold secrets.")
    assert [option.kind for option in fewer] == ["allow_once", "reject_once", "reject_always"]


async def test_what_is_too_long_to_read_is_not_offered_for_good():
    it = scene()
    await it.ask(run(f"frob {'x' * 200}"))
    assert [option.kind for option in it.client.asked[0][1]] == ["allow_once", "reject_once"]


@pytest.mark.parametrize("answer", ["reject_once", "reject_always", "none", "cancelled"])
async def test_every_other_answer_allows_nothing(answer):
    it = scene(answer)
    decision = await it.ask(run("npm test"))
    assert not decision.allowed
    assert decision.why
    assert decision.ends == ("cancelled" if answer == "cancelled" else "")


async def test_an_option_that_was_not_on_offer_allows_nothing():
    it = scene()

    async def forged(*_: object) -> PermissionOutcome:
        await trio.lowlevel.checkpoint()
        return PermissionOutcome(PermissionOption("allow_always", "Always", "allow_always"))

    it.approver._client = type("Forger", (), {"request_permission": staticmethod(forged)})()
    assert not (await it.ask(run("$x"))).allowed


async def test_no_answer_is_waited_for_until_the_turn_is_cancelled(autojump_clock):
    it = scene("never")
    with trio.move_on_after(3600) as scope:
        await it.ask(run("npm test"))
    assert scope.cancelled_caught
    # The next question is not held up by the one that was given up.
    it.client.answer = "allow_once"
    with trio.fail_after(5):
        assert (await it.ask(run("npm test"))).allowed


async def test_always_holds_for_this_session_without_a_place_to_keep_it():
    it = scene("allow_always")
    assert (await it.ask(run("npm test"))).allowed
    assert (await it.ask(run("npm test -- -x"))).allowed
    assert not (await scene("reject_once").ask(run("npm test"))).allowed
    assert len(it.client.asked) == 1


@pytest.mark.parametrize(("answer", "allowed"), [("allow_always", True), ("reject_always", False)])
async def test_what_holds_for_good_is_kept(tmp_path, answer, allowed):
    assert (await scene(answer, kept=tmp_path).ask(run("npm test"))).allowed is allowed
    later = scene(kept=tmp_path)
    assert (await later.ask(run("npm test --x"))).allowed is allowed
    assert later.client.asked == []
    assert (await later.ask(run("npm publish"))).allowed
    assert len(later.client.asked) == 1


async def test_an_answer_that_cannot_be_kept_holds_for_the_session(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    it = scene("allow_always", "none", kept=tmp_path / "file")
    assert (await it.ask(run("npm test"))).allowed
    assert (await it.ask(run("npm test"))).allowed
    assert "could not be kept" in caplog.text


async def test_questions_are_asked_one_after_the_other():
    it = scene()
    async with trio.open_nursery() as nursery:
        for line in ("a", "b", "c"):
            nursery.start_soon(it.ask, run(line))
    assert (it.client.most_open, sorted(it.questions)) == (1, ["a", "b", "c"])


async def test_what_an_answer_has_settled_is_not_asked_again():
    it = scene("allow_always")
    found: list[Decision] = []

    async def ask(line: str) -> None:
        found.append(await it.ask(run(line)))

    async with trio.open_nursery() as nursery:
        for line in ("npm test a", "npm test b", "npm test c"):
            nursery.start_soon(ask, line)
    assert [decision.allowed for decision in found] == [True, True, True]
    assert len(it.client.asked) == 1


async def test_a_mode_that_was_set_meanwhile_counts_for_what_waits():
    it = scene("allow_once")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(it.ask, run("a"))
        nursery.start_soon(it.ask, run("b"))
        await trio.lowlevel.checkpoint()
        it.approver.put("yolo")
    assert len(it.client.asked) <= 1


async def test_a_turn_may_ask_so_many_times_and_then_ends():
    it = scene()
    it.approver.begin_turn(2)
    assert [(await it.ask(run(line))).ends for line in ("a", "b", "c", "d")] == [
        "",
        "",
        "too_many",
        "too_many",
    ]
    assert len(it.client.asked) == 2
    it.approver.begin_turn(2)
    assert (await it.ask(run("a"))).allowed


PLAN = ToolRequest("switch_mode", "1. do it")


@pytest.mark.parametrize(
    ("answer", "mode"), [("allow_once", "ask"), ("allow_always", "accept_edits"), ("reject_once", "plan")]
)
async def test_leaving_plan_mode_is_a_choice(answer, mode):
    it = scene(answer, mode="plan")
    decision = await it.ask(PLAN, "exit_plan_mode")
    assert (it.approver.mode, it.modes) == (mode, [] if mode == "plan" else [mode])
    assert decision.allowed is (mode != "plan")
    assert (mode in decision.note) is decision.allowed
    assert it.client.asked[0][1] == LEAVE_PLAN
    assert it.questions == ["1. do it"]


async def test_nothing_is_left_that_one_is_not_in():
    it = scene()
    assert "not in plan mode" in (await it.ask(PLAN, "exit_plan_mode")).why
    assert it.client.asked == []
