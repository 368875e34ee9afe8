"""Replacements in a text, all of them or none. Pure.

What stands there letter by letter is taken first. Else a place that differs in what models get wrong, and in
nothing else, is taken when it is the only one: the level of likeness that finds any place decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runtime.tools.edits.edit_errors import Miss, ambiguous, missing, unclear
from runtime.tools.edits.edit_variants import Reading, readings
from runtime.tools.edits.fit_new_lines import Line, Place, splice
from runtime.tools.edits.locate_text import Text, line_places, meant, places_of, text_of
from runtime.tools.edits.match_levels import IN_LINE, INDENTATION, LEVELS, ONE_FOR_ONE, Level
from runtime.values.errors import ToolError


@dataclass(frozen=True, slots=True)
class Edit:
    """`old` becomes `new`. everywhere: at each place; else it must stand at one place only."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Replaced:
    """The text after all edits, how many places changed, and what the model should know of them."""

    text: str
    places: int
    notes: tuple[str, ...] = ()


def replace_all(text: str, edits: Sequence[Edit], *, again: bool = False, as_lines: bool = False) -> Replaced:
    """Make the edits in order. Raises Miss when one cannot be made, which shows the place that is nearest.

    again: the last edit of this file missed, too; more of it is shown then. as_lines: a text that begins with
    the first letter of a line means the line, so that new lines get its indentation.
    """
    notes = []
    places = 0
    for number, edit in enumerate(edits, 1):
        where = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        try:
            done = _one(text, edit, again=again, as_lines=as_lines)
        except ToolError as error:
            raise type(error)(where + error.message) from None
        text, places = done.text, places + done.places
        notes += [where + note for note in done.notes]
    return Replaced(text, places, tuple(notes))


def _one(raw: str, edit: Edit, *, again: bool, as_lines: bool) -> Replaced:
    # A byte order mark is no part of a text, here and everywhere.
    old, new = (part.replace("\r\n", "\n").removeprefix("\ufeff") for part in (edit.old, edit.new))
    if not old:
        raise ToolError("old is empty; give the text to replace, or use write_file for a new file")
    if old == new:
        raise ToolError("old and new are the same")
    text = text_of(raw, new)
    found = list(places_of(old, text.plain)) if edit.everywhere else meant(old, new, text.plain)
    if len(found) > 1 and not edit.everywhere:
        raise ambiguous(text.lines, [text.line_of(at) for at in found], old)
    if not found:
        return _nearly(text, Reading(old, new), again=again)
    if len(found) == 1 and (as_lines or old[0] in " \t") and _cuts_indentation(text.plain, found[0]):
        return _lines_at(text, Reading(old, new), found[0])
    made, done = [], 0
    for at in found:
        end = at + len(old)
        made += [text.raw[done:at], new.replace("\n", text.line_feed(at, end) if "\n" in new else "\n")]
        done = end
    return _finished(text, "".join([*made, text.raw[done:]]), len(found))


def _nearly(text: Text, edit: Reading, *, again: bool) -> Replaced:
    """The one place that is alike. Raises Miss."""
    others = readings(edit.old, edit.new)
    for level in (None, IN_LINE, *LEVELS):
        for reading in others:
            done = _within(text, reading, level) if level in (None, IN_LINE) else _lines(text, reading, level)
            if done is not None:
                return done
    raise missing(text.lines, edit.old, edit.new, again=again)


def _within(text: Text, edit: Reading, level: Level | None) -> Replaced | None:
    """At a place that is the same letter by letter, or sign by sign."""
    haystack = text.plain if level is None else text.plain_signs
    needle = edit.old if level is None else edit.old.translate(ONE_FOR_ONE)
    found = meant(needle, edit.new, haystack)
    if not found:
        return None
    if len(found) > 1:
        raise ambiguous(text.lines, [text.line_of(at) for at in found], edit.old)
    start, end = found[0], found[0] + len(edit.old)
    if level is None:
        made: list[Line] | None = [Line(line) for line in edit.new.split("\n")]
    else:
        there, old = text.plain[start:end].split("\n"), edit.old.split("\n")
        rows = tuple((index,) for index in range(len(old)))
        made = splice(there, Place(rows), old, edit.new.split("\n"), level, text.step)
        above = text.line_of(start) - 1
        made = made and [
            replace(line, source=above + line.source) if line.source is not None else line for line in made
        ]
    return _put(text, edit, level, made, start, end)


def _lines(text: Text, edit: Reading, level: Level) -> Replaced | None:
    """At whole lines."""
    found = line_places(text, _whole(edit)[0], level)
    if not found:
        return None
    if len(found) > 1:
        raise ambiguous(text.lines, [place.first + 1 for place in found], edit.old, level.name)
    return _at_lines(text, edit, level, found[0])


def _at_lines(text: Text, edit: Reading, level: Level, place: Place) -> Replaced:
    old, new = _whole(edit)
    start, end = text.starts[place.first], text.starts[place.end] - 1
    if not edit.new and edit.old.endswith("\n"):
        # Lines that are taken out go with their ends.
        return _put(text, edit, level, [], start, min(end + 1, len(text.raw)))
    made = splice(text.lines, place, old, new, level, text.step)
    return _put(text, edit, level, made, start, end)


def _cuts_indentation(text: str, start: int) -> bool:
    """Whether it begins between the indentation of a line and nothing else before it."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return bool(before) and not before.strip()


def _lines_at(text: Text, edit: Reading, start: int) -> Replaced:
    """The edit of lines that stand there letter by letter, the first indented by more than the edit has it.

    What it adds is to be as deep as they are. Raises Miss when it may as well mean a line that it has whole.
    """
    end = start + len(edit.old)
    row = text.line_of(start) - 1
    if text.plain[end : end + 1] in ("", "\n") or edit.old.endswith("\n"):
        rows = tuple((row + number,) for number in range(len(_whole(edit)[0])))
        return _at_lines(text, edit, INDENTATION, Place(rows))
    others = line_places(text, _whole(edit)[0], INDENTATION)
    if others:
        found = sorted([row + 1, *(place.first + 1 for place in others)])
        raise ambiguous(text.lines, found, edit.old, INDENTATION.name)
    return _put(text, edit, None, [Line(line) for line in edit.new.split("\n")], start, end)


def _whole(edit: Reading) -> tuple[list[str], list[str]]:
    """The lines of both texts without the line feeds around them that both have, or that `new` has lost."""
    old, new = edit.old, edit.new
    while old.startswith("\n") and new.startswith("\n"):
        old, new = old[1:], new[1:]
    while old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    return old.removeprefix("\n").removesuffix("\n").split("\n"), new.split("\n")


def _put(
    text: Text, edit: Reading, level: Level | None, made: list[Line] | None, start: int, end: int
) -> Replaced:
    first, last = text.line_of(start), text.line_of(max(start, end - 1))
    if text.plain[start:end] == edit.new:
        raise Miss("this edit changes nothing: the file has the new text already")
    if made is None:
        raise unclear(text.lines, first, last, level.name if level else "form")
    feed = text.line_feed(start, end)
    pieces = [_ended(text, line, feed) for line in made[:-1]] + [line.text for line in made[-1:]]
    result = text.raw[:start] + "".join(pieces) + text.raw[end:]
    if result == text.raw:
        raise Miss("this edit changes nothing: the file has the new text already")
    said = [edit.done] if edit.done else []
    said += [f"old differed from the file in its {level.name}, which new now follows"] if level else []
    where = f"line {first}" if first == last else f"lines {first}-{last}"
    return _finished(text, result, 1, f"{'; '.join(said)} ({where})")


def _ended(text: Text, line: Line, feed: str) -> str:
    end = len(text.raw) if line.source is None else text.starts[line.source + 1] - 1
    # A line that was the last of the file had no end.
    return line.text + (text.raw[end] if end < len(text.raw) else feed)


def _finished(text: Text, raw: str, places: int, *notes: str) -> Replaced:
    return Replaced(raw.replace(text.mark, "\r\n"), places, notes)
