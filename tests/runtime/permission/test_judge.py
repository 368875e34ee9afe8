"""Verdicts: every mode with every action, and the order in which rules count."""

from pathlib import Path

import pytest

from runtime.permission.judge import Verdict, judge
from runtime.permission.modes import ANSWERS, MODES, find_mode
from runtime.permission.rules import Policy, Rule, parse_allow, parse_rule
from runtime.ports import ToolRequest

ROOT = Path("/project")
REQUESTS = {
    "read": ToolRequest("read", "a.py", (ROOT / "a.py",)),
    "write": ToolRequest("write", "a.py", (ROOT / "a.py",)),
    "execute": ToolRequest("execute", "npm test", (ROOT,)),
    "fetch": ToolRequest("fetch", "https://a.example/x"),
    "plan": ToolRequest("plan", "update_plan"),
    "other": ToolRequest("other", "{}"),
    "switch_mode": ToolRequest("switch_mode", "1. do it"),
}
TOOLS = {"read": "read_file", "write": "edit_file", "execute": "run_command", "fetch": "fetch_url"}


def policy(allow=(), ask=(), deny=()) -> Policy:
    return Policy(
        ROOT, tuple(map(parse_allow, allow)), tuple(map(parse_rule, ask)), tuple(map(parse_rule, deny))
    )


def verdict(request: ToolRequest, mode: str = "ask", tool: str = "", **rules: list[str]) -> Verdict:
    known = find_mode(mode)
    assert known is not None
    return judge(tool or TOOLS.get(request.action, "mcp__x__y"), request, known, policy(**rules))


def command(line: str, mode: str = "ask", **rules: list[str]) -> str:
    return verdict(ToolRequest("execute", line, (ROOT,)), mode, "", **rules).answer


def test_every_mode_has_an_answer_for_every_action():
    assert set(ANSWERS) == {mode.mode_id for mode in MODES}
    assert all(set(answers) == set(REQUESTS) for answers in ANSWERS.values())


@pytest.mark.parametrize("mode", ANSWERS)
@pytest.mark.parametrize("action", REQUESTS)
def test_without_rules_the_mode_decides(mode, action):
    assert verdict(REQUESTS[action], mode).answer == ANSWERS[mode][action]


@pytest.mark.parametrize("mode", ANSWERS)
@pytest.mark.parametrize("action", sorted(TOOLS))
def test_a_denied_tool_is_denied_in_every_mode(mode, action):
    tool = TOOLS[action]
    found = verdict(REQUESTS[action], mode, allow=[tool], deny=[tool])
    assert found.answer == "deny"
    assert tool in found.why


@pytest.mark.parametrize("action", sorted(TOOLS))
def test_an_ask_rule_asks_where_the_mode_or_a_rule_would_not(action):
    tool = TOOLS[action]
    assert verdict(REQUESTS[action], "yolo", allow=[tool], ask=[tool]).answer == "ask"
    assert verdict(REQUESTS[action], "yolo", allow=[tool], ask=[tool]).always == ()


def test_no_allow_rule_makes_plan_mode_write():
    assert command("npm test", "plan", allow=["run_command"]) == "deny"
    assert verdict(REQUESTS["write"], "plan", allow=["edit_file"]).answer == "deny"


def test_leaving_plan_mode_is_always_asked():
    assert (
        verdict(REQUESTS["switch_mode"], "plan", "exit_plan_mode", allow=["exit_plan_mode"]).answer == "ask"
    )


def test_compound_commands_are_as_hard_as_their_hardest_part():
    allow = ["run_command:git status*", "run_command:npm test*"]
    assert command("git status && npm test -- -x", allow=allow) == "allow"
    assert command("git status && npm publish", allow=allow) == "ask"
    assert command("git status > log", allow=allow) == "ask"
    assert command("git status && npm publish", allow=allow, deny=["run_command:npm publish*"]) == "deny"


def test_what_is_unclear_is_not_waved_through_by_yolo_where_a_rule_could_mean_it():
    assert command("x $(y)", "yolo") == "allow"
    assert command("x $(y)", "yolo", deny=["run_command:rm*"]) == "ask"
    assert command("python x.py", "yolo", deny=["run_command:rm*"]) == "ask"
    assert command("ls", "yolo", deny=["run_command:rm*"]) == "allow"
    assert command("x $(rm y)", "yolo", deny=["run_command:rm*"]) == "deny"


def test_a_redirection_does_not_get_around_what_may_not_be_written():
    assert command("ls > secrets/x", "yolo", deny=["write_file:secrets/**"]) == "deny"
    assert command("ls > x", "yolo", deny=["edit_file"]) == "deny"
    assert command("ls > x", "yolo", deny=["write_file:secrets/**"]) == "allow"


def test_in_another_folder_a_relative_program_is_another_program():
    rules = policy(allow=["run_command:./run.sh*", "run_command:python x.py*", "run_command:ls*"])
    for line, elsewhere in (("./run.sh", "ask"), ("python x.py", "ask"), ("ls", "allow")):
        for folder, answer in ((ROOT, "allow"), (ROOT / "sub", elsewhere)):
            assert (
                judge("run_command", ToolRequest("execute", line, (folder,)), "ask", rules).answer == answer
            )


def test_a_command_that_starts_outside_or_hides_something_is_asked_about():
    rules = policy(allow=["run_command:ls*"])
    for more in ({"outside": True}, {"risk": "it hides something"}):
        request = ToolRequest("execute", "ls", (Path("/etc"),), **more)
        assert judge("run_command", request, "ask", rules).answer == "ask"


@pytest.mark.parametrize("mode", ["ask", "accept_edits", "plan"])
@pytest.mark.parametrize("more", [{"outside": True}, {"secret": True}, {"risk": "git runs it"}])
def test_what_needs_a_look_is_asked_about(mode, more):
    request = ToolRequest("read", ".env", (ROOT / ".env",), **more)
    assert verdict(request, mode, allow=["read_file", "read_file:**"]).answer == "ask"
    assert verdict(request, "yolo").answer == "allow"


def test_a_rule_that_names_the_very_file_speaks_of_secrets_too():
    request = ToolRequest("read", ".env", (ROOT / ".env",), secret=True)
    assert verdict(request, allow=["read_file:.env"]).answer == "allow"
    assert verdict(request, allow=["read_file:.en?"]).answer == "ask"
    assert verdict(request, allow=["read_file:/project/.env"]).answer == "allow"


def test_what_is_outside_needs_a_whole_path():
    request = ToolRequest("read", "/etc/x", (Path("/etc/x"),), outside=True)
    assert verdict(request, allow=["read_file:/etc/**"]).answer == "allow"
    assert verdict(request, allow=["read_file:etc/**", "read_file:**/x"]).answer == "ask"


def test_every_path_of_a_call_has_to_be_covered_and_one_is_enough_to_deny():
    request = ToolRequest("write", "a", (ROOT / "src/a", ROOT / "doc/b"))
    assert verdict(request, allow=["edit_file:src/**"]).answer == "ask"
    assert verdict(request, allow=["edit_file:src/**"], deny=["edit_file:DOC"]).answer == "deny"


def test_a_denied_name_is_denied_whatever_it_leads_to():
    request = ToolRequest("read", "link/../secrets", (ROOT / "elsewhere",))
    assert verdict(request, deny=["read_file:secrets"]).answer == "deny"


@pytest.mark.parametrize(
    ("request_", "tool", "always", "never"),
    [
        (REQUESTS["execute"], "run_command", ["run_command:npm test*"], ["run_command:npm test*"]),
        (ToolRequest("execute", "a && b", (ROOT,)), "run_command", ["run_command:a", "run_command:b"], []),
        (ToolRequest("execute", "a; b; c; d", (ROOT,)), "run_command", [], []),
        (ToolRequest("execute", "sudo ls", (ROOT,)), "run_command", [], ["run_command:sudo ls"]),
        (ToolRequest("execute", "$x", (ROOT,)), "run_command", [], []),
        (ToolRequest("execute", "a; $x", (ROOT,)), "run_command", [], []),
        (ToolRequest("execute", "a > b", (ROOT,)), "run_command", [], ["run_command:a"]),
        (REQUESTS["write"], "edit_file", ["edit_file:a.py"], ["edit_file:a.py"]),
        (ToolRequest("write", "*", (ROOT / "*",)), "edit_file", [], []),
        (ToolRequest("write", "x", (ROOT / ".git/x",), risk="r"), "edit_file", [], ["edit_file:.git/x"]),
        (
            REQUESTS["fetch"],
            "fetch_url",
            ["fetch_url:https://a.example/*"],
            ["fetch_url:https://a.example/*"],
        ),
        (REQUESTS["other"], "mcp__x__y", ["mcp__x__y"], ["mcp__x__y"]),
    ],
)
def test_what_always_and_never_would_stand_for(request_, tool, always, never):
    found = verdict(request_, "ask", tool)
    assert ([str(rule) for rule in found.always], [str(rule) for rule in found.never]) == (always, never)


@pytest.mark.parametrize("line", ["npm test", "git status && make all", "frob 'a b' \"c'd\""])
def test_always_settles_the_same_call(line):
    request = ToolRequest("execute", line, (ROOT,))
    always = verdict(request).always
    again = Policy(ROOT, tuple(parse_allow(str(rule)) for rule in always))
    assert judge("run_command", request, "ask", again).answer == "allow"


def test_a_rule_for_a_group_of_tools():
    assert verdict(REQUESTS["other"], tool="mcp__x__y", allow=["mcp__x__*"]).answer == "allow"
    assert verdict(REQUESTS["other"], tool="mcp__z__y", allow=["mcp__x__*"]).answer == "ask"
    assert Rule("mcp__x__*").is_for("mcp__x__")


def test_no_allow_rule_lets_a_foreign_tool_change_things_while_planning():
    writes, looks = ToolRequest("other", "x:write"), ToolRequest("other", "x:find", looks=True)
    for rule in ("mcp__x__y", "mcp__x__*"):
        asked = verdict(writes, "plan", allow=[rule])
        assert (asked.answer, asked.always) == ("ask", ())
        assert "plan mode" in asked.why
        assert verdict(looks, "plan", allow=[rule]).answer == "allow"
        assert verdict(writes, "ask", allow=[rule]).answer == "allow"
    assert verdict(looks, "plan").answer == "ask"


def test_git_obeys_the_settings_of_the_folder_that_it_is_started_in():
    """A folder with HEAD, config, objects and refs is a repository, whoever put it there."""
    rules = policy(allow=["run_command:git status*", "run_command:hg log*"])
    for line in ("git status", "hg log"):
        for folder, answer in ((ROOT, "allow"), (ROOT / "sub", "ask")):
            request = ToolRequest("execute", line, (folder,))
            assert judge("run_command", request, "ask", rules).answer == answer
