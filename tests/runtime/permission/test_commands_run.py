"""What real shells run of a line that was allowed is never more than the rules name.

The lines are run by every shell that is there, with fake programs on PATH. What a rule names is worked out
here once more, in a few lines of its own.
"""

import pytest

from runtime.permission.judge import judge
from runtime.permission.rules import Policy, parse_allow
from runtime.ports import ToolRequest
from tests.runtime.permission.command_lines import ALLOW, BAD, GOOD, TRICKS, made_lines
from tests.runtime.permission.shell_sandbox import SHELLS, Argv, Ran, Sandbox

MADE = 640


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return Sandbox(tmp_path_factory.mktemp("shell"))


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return Policy(tmp_path_factory.mktemp("root"), allow=tuple(map(parse_allow, ALLOW)))


def runs_freely(line: str, policy: Policy) -> bool:
    return judge("run_command", ToolRequest("execute", line), "ask", policy).answer == "allow"


def is_named(argv: Argv) -> bool:
    """Whether a rule names the program with its first arguments, read as naively as can be."""
    for rule in ALLOW:
        pattern = rule.partition(":")[2]
        words = tuple(pattern.removesuffix("*").split())
        if argv[: len(words)] == words and (pattern.endswith("*") or len(argv) == len(words)):
            return True
    return False


def is_harmless(ran: Ran) -> bool:
    return not ran.made and all(map(is_named, ran.programs))


@pytest.mark.parametrize("line", GOOD)
def test_what_the_rules_name_runs_without_asking(line, policy, sandbox):
    assert runs_freely(line, policy)
    for shell in SHELLS:
        assert sandbox.run(line, shell).programs != ()


@pytest.mark.parametrize("line", [*BAD, *TRICKS])
def test_a_trick_is_asked_about(line, policy):
    assert not runs_freely(line, policy)


def test_the_sandbox_sees_what_tricks_do(sandbox):
    seen = [
        line for line in (*BAD, *TRICKS) if not all(is_harmless(sandbox.run(line, one)) for one in SHELLS)
    ]
    assert len(seen) >= 80


def test_no_made_line_runs_what_no_rule_names(policy, sandbox):
    free, harmful = [], []
    for line in made_lines(MADE):
        allowed = runs_freely(line, policy)
        harmless = all(is_harmless(sandbox.run(line, shell)) for shell in (SHELLS if allowed else SHELLS[:1]))
        assert harmless or not allowed, line
        free += [line] if allowed else []
        harmful += [] if harmless else [line]
    assert len(free) >= 50
    assert len(harmful) >= 300
