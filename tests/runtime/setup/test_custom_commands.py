"""Commands that stand for a prompt: what becomes of their arguments, and what is no command."""

import pytest

from runtime.values.prompt import CustomCommand, meant
from runtime.values.texts import CONTINUING


def command(template: str, name: str = "do") -> dict[str, CustomCommand]:
    return {name: CustomCommand(name, "does it", "", template)}


@pytest.mark.parametrize(
    ("template", "typed", "text"),
    [
        ("Plain.", "/do", "Plain."),
        ("Plain.", "/do  more  words ", "Plain.\n\nmore  words"),
        ("On $1 and $2.", "/do a b c", "On a and b."),
        ("On $1 and $2.", "/do a", "On a and ."),
        ("All: $ARGUMENTS!", "/do a  b", "All: a  b!"),
        ("All: $ARGUMENTS!", "/do", "All: !"),
        ("Two: $1 $2", "/do $2 $ARGUMENTS", "Two: $2 $ARGUMENTS"),
        ("Costs $100 and $x", "/do", "Costs 00 and $x"),
        ("Lines: $ARGUMENTS", "/do one\ntwo\n", "Lines: one\ntwo"),
        (r"\1 \g<0> $1", r"/do \g<1>", r"\1 \g<0> \g<1>"),
    ],
)
def test_filled(template: str, typed: str, text: str) -> None:
    assert meant(typed, command(template)) == text


@pytest.mark.parametrize("typed", ["do", "/doit", "/ do", "say /do", "/DO", "/", "", "//do", "/do/x"])
def test_what_is_no_command_stays_as_it_is(typed: str) -> None:
    assert meant(typed, command("Never.")) == typed


@pytest.mark.parametrize("typed", sorted(CONTINUING))
def test_a_command_of_ours_stands_for_what_it_did(typed: str) -> None:
    assert meant(typed, command("Never.", typed[1:].split()[0])) == CONTINUING[typed]
