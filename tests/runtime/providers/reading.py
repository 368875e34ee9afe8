"""What comes out of an answer's bytes, however they are cut: for the streams of every API."""

from dataclasses import dataclass

from runtime.providers.http.event_stream import ReplyReader
from runtime.values.errors import ProviderErrorKind
from runtime.values.model import CallPart, Part, ReasoningPart, StopPart, TextPart, ThoughtPart, UsagePart


@dataclass(frozen=True)
class Answer:
    """What came out, text of one kind joined."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    usage: tuple[int, int, int] | None = None
    stop: str = ""
    failure: ProviderErrorKind | None = None
    reasoning: str = ""


def read_parts(reply: ReplyReader, pieces: list[bytes]) -> tuple[list[Part], ProviderErrorKind | None]:
    """All parts of an answer that comes in these pieces, and how it failed, if it did."""
    parts: list[Part] = []
    for piece in pieces:
        parts += reply.feed(piece)
        if reply.failure or reply.done:
            break
    if not reply.failure:
        parts += reply.end()
    return parts, reply.failure.kind if reply.failure else None


def read_answer(reply: ReplyReader, pieces: list[bytes]) -> Answer:
    """The same, put together."""
    parts, failure = read_parts(reply, pieces)
    usage = next(
        ((p.input_tokens, p.output_tokens, p.cached_tokens) for p in parts if isinstance(p, UsagePart)), None
    )
    return Answer(
        text="".join(p.text for p in parts if isinstance(p, TextPart)),
        thought="".join(p.text for p in parts if isinstance(p, ThoughtPart)),
        calls=tuple((p.call.id, p.call.name, p.call.arguments) for p in parts if isinstance(p, CallPart)),
        usage=usage,
        stop=next((p.reason for p in parts if isinstance(p, StopPart)), ""),
        failure=failure,
        reasoning=next((p.payload for p in parts if isinstance(p, ReasoningPart)), ""),
    )
