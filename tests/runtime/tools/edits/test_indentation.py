"""The indentation of new lines: one answer where the old ones leave one, none where they leave two."""

import pytest

from runtime.tools.edits.indentation import Indents, usual_step

TWO, FOUR, EIGHT = "  ", "    ", "        "


@pytest.mark.parametrize(
    ("pairs", "steps", "given", "answer"),
    [
        ([(FOUR, FOUR)], ("", ""), EIGHT, EIGHT),
        ([("", FOUR)], ("", ""), FOUR, EIGHT),
        ([("", FOUR), (FOUR, EIGHT)], ("", ""), EIGHT, FOUR * 3),
        ([(EIGHT, FOUR)], ("", ""), FOUR * 3, None),
        ([(EIGHT, FOUR)], (FOUR, FOUR), FOUR * 3, EIGHT),
        ([(EIGHT, FOUR)], (FOUR, FOUR), FOUR, ""),
        ([(EIGHT, FOUR)], (FOUR, FOUR), TWO, None),
        ([(FOUR, "\t")], ("", ""), EIGHT, "\t\t"),
        ([("\t", FOUR)], ("", ""), "\t\t", EIGHT),
        ([(TWO, FOUR), (FOUR, EIGHT)], ("", ""), TWO * 3, FOUR * 3),
        # Moved by two, or two for each one: only the steps tell.
        ([(TWO, FOUR)], ("", ""), FOUR, None),
        ([(TWO, FOUR)], (TWO, FOUR), FOUR, EIGHT),
        ([(TWO, FOUR)], (TWO, TWO), FOUR, TWO * 3),
        # Eight columns for a tab, or four and all a level too deep.
        ([(EIGHT, "\t")], ("", ""), EIGHT * 2, "\t\t"),
        ([(EIGHT, "\t")], (FOUR, "\t"), FOUR * 3, "\t\t"),
        # All flat: the depth is lost.
        ([("", FOUR), ("", EIGHT)], ("", ""), "", None),
        # The first line alone was begun at its first letter.
        ([("", FOUR), (EIGHT, EIGHT)], ("", ""), EIGHT, EIGHT),
        ([("", FOUR), (EIGHT, EIGHT)], ("", ""), "", None),
        ([(TWO, FOUR), ("\t", FOUR)], ("", ""), "\t\t", EIGHT),
    ],
)
def test_a_line_that_is_not_the_first(pairs, steps, given, answer):
    assert Indents(pairs, steps).of(given) == answer


def test_the_first_line_begun_at_its_first_letter():
    assert Indents([("", FOUR), (EIGHT, EIGHT)]).of("", first=True) == FOUR


@pytest.mark.parametrize(
    ("lines", "step"),
    [
        (["a", "  b", "    c", "d", "  e"], TWO),
        (["\ta", "\t\tb", "", "\tc"], "\t"),
        ([FOUR + "a", FOUR + "b"], ""),
        ([], ""),
    ],
)
def test_the_usual_step(lines, step):
    assert usual_step(lines) == step
