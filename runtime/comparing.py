"""Whether what a replay made again is what was recorded: requests by digest, trims by figures. Pure."""

from collections.abc import Sequence

from runtime.digest import request_digest
from runtime.history.notice import TrimNotice
from runtime.model import ModelRequest
from schemas.transcript import RequestRecord, TrimStep


class Difference(Exception):
    """What was made again is not what was recorded; the text says what and where."""


def compare(place: str, record: RequestRecord, request: ModelRequest) -> None:
    """Raise Difference unless the request is the recorded one, byte for byte."""
    rows = sum(len(segment.rows) for segment in request.segments)
    if rows != record.rows:
        raise Difference(f"{place}: {record.rows} rows were sent, {rows} are made again")
    digest = request_digest(request)
    if digest != record.digest:
        raise Difference(
            f"{place}: the same {rows} rows, but sha256 {digest[:12]} is not {record.digest[:12]}"
        )


def check_trims(place: str, made: Sequence[TrimNotice], recorded: Sequence[TrimStep]) -> None:
    """Raise Difference unless the trims are the recorded ones, with all their figures."""
    again, then = [trim_facts(trim) for trim in made], [recorded_facts(trim) for trim in recorded]
    if again != then:
        raise Difference(f"{place}: trimmed then: {then or 'nothing'}; again: {again or 'nothing'}")


TrimFacts = tuple[int, int, int, str, str, tuple[int, int, int] | None]


def trim_facts(trim: TrimNotice) -> TrimFacts:
    """What is compared of a trim that was made again."""
    tokens = (trim.tokens.budget, trim.tokens.before, trim.tokens.after) if trim.tokens else None
    kept = trim.dropped_messages, trim.dropped_turns, trim.kept_turns
    return (*kept, str(trim.reason), str(trim.strategy), tokens)


def recorded_facts(trim: TrimStep) -> TrimFacts:
    """The same of a recorded one."""
    tokens = None
    if trim.token_budget is not None and trim.tokens_before is not None and trim.tokens_after is not None:
        tokens = trim.token_budget, trim.tokens_before, trim.tokens_after
    return trim.dropped_messages, trim.dropped_turns, trim.kept_turns, trim.reason, trim.strategy, tokens
