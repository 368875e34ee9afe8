"""An answer as lines of JSON, one object each: from bytes to parts. Pure; knows no socket and no API.

What a stream of events is elsewhere, in the same hands: only what is between two of them differs.
"""

from runtime.errors import ProviderErrorKind
from runtime.model import Part
from runtime.providers.decoding import Decoder
from runtime.providers.failures import Peer, failure
from runtime.providers.reply import ReplyReader
from runtime.providers.sse import SseSplitter


class LineSplitter(SseSplitter):
    """Feed it what was read; it gives back the lines that are complete. Empty ones are passed over."""

    def _events(self, lines: list[bytes]) -> list[bytes]:
        return [line for line in lines if line and not line.isspace()]


class LineReader(ReplyReader):
    """One answer with status 200 in lines; an answer in one piece is one line."""

    def __init__(self, peer: Peer, decoder: Decoder) -> None:
        super().__init__(peer, decoder)
        self._splitter = LineSplitter()

    def _read(self, data: bytes) -> list[Part]:
        if not self._started:
            data = data.lstrip()
            self._started = bool(data)
            if data[:1] not in (b"", b"{"):
                self._decoder.failure = failure(self._peer, ProviderErrorKind.MALFORMED)
                return []
        return super()._read(data) if data else []
