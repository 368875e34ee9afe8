"""A guided reply to parts while it is written: pure. Knows the object of `local_rows` and no server."""

import json
import re
from collections.abc import Callable, Sequence

import orjson

from runtime.model import CallPart, CallStartPart, TextPart, ThoughtPart
from runtime.providers.decoding import Object, PartSink, table, text
from runtime.providers.encoding import json_text
from runtime.providers.failures import Peer
from runtime.providers.openai_events import ChatDecoder
from runtime.rows import ToolCall

_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_TOOL = re.compile(r'\s*\{\s*"tool"\s*:\s*"((?:[^"\\]|\\.)*)"')
_PIECES = re.compile(
    r"""(?: [^"\\]+
          | \\["\\/bfnrt]
          | \\u(?:[0-9a-cA-Ce-fE-F][0-9a-fA-F]{3} | [dD][0-7c-fC-F][0-9a-fA-F]{2})
          | \\u[dD][89abAB][0-9a-fA-F]{2} (?: \\u[0-9a-fA-F]{4} | (?=[^\\]) | (?=\\[^u]) )
        )*""",
    re.VERBOSE,
)
"""The part of a JSON string's inside that is complete: no half of an escape, no half of a pair."""


class GuidedReader:
    """One reply. `feed` gives what can be shown at once: the answer's text, the name of a call."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._held = ""
        self._mode: Callable[[str, PartSink], None] = self._begin
        self._call_id = ""

    def feed(self, piece: str, sink: PartSink) -> None:
        """A piece of the object's text."""
        self._mode(piece, sink)

    def finish(self) -> list[CallPart]:
        """The call, if it is one and complete."""
        if not self._call_id:
            return []
        try:
            reply = table(orjson.loads(self._held))
        except orjson.JSONDecodeError:
            return []
        arguments = json_text(reply.get("arguments", {}))
        return [CallPart(0, ToolCall(self._call_id, text(reply.get("tool")), arguments))]

    def _begin(self, piece: str, sink: PartSink) -> None:
        self._held += piece
        answer, tool = _ANSWER.match(self._held), _TOOL.match(self._held)
        if answer:
            held, self._held = self._held[answer.end() :], ""
            self._mode = self._answer
            self._answer(held, sink)
        elif tool:
            self._call_id, self._mode = self._new_id(), self._rest
            sink.add(CallStartPart(0, self._call_id, _unquoted(tool[1])))
        elif self._held.strip() and not self._held.lstrip().startswith("{"):
            # No schema was in force after all: what the model writes is its answer.
            held, self._held, self._mode = self._held, "", self._plain
            self._plain(held, sink)

    def _answer(self, piece: str, sink: PartSink) -> None:
        self._held += piece
        ready = _PIECES.match(self._held)
        end = ready.end() if ready else 0
        sink.text(TextPart, _unquoted(self._held[:end]))
        self._held = self._held[end:]
        if self._held.startswith('"'):
            self._mode = self._over

    def _rest(self, piece: str, sink: PartSink) -> None:
        self._held += piece

    def _plain(self, piece: str, sink: PartSink) -> None:
        sink.text(TextPart, piece)

    def _over(self, piece: str, sink: PartSink) -> None:
        """Behind the answer only the end of the object comes."""


class GuidedDecoder(ChatDecoder):
    """Chat completion chunks whose content is a guided reply."""

    def __init__(self, peer: Peer, new_id: Callable[[], str]) -> None:
        super().__init__(peer, new_id)
        self._reader = GuidedReader(new_id)

    def _take(self, value: Object, sink: PartSink) -> None:
        super()._take(value, _Through(self._reader, sink))

    def _calls(self) -> Sequence[CallPart]:
        return self._reader.finish()


class _Through(PartSink):
    """Sends the answer's text through the reader; everything else goes on as it is."""

    def __init__(self, reader: GuidedReader, sink: PartSink) -> None:
        super().__init__()
        self._reader = reader
        self._sink = sink

    def text(self, kind: type[TextPart] | type[ThoughtPart], text: str) -> None:
        if kind is TextPart:
            self._reader.feed(text, self._sink)
        else:
            self._sink.text(kind, text)


def _unquoted(inside: str) -> str:
    value = json.loads(f'"{inside}"', strict=False)
    return value if isinstance(value, str) else ""
