"""How many tokens a text is: the default rule, a finer one, and real vocabularies. Knows no row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

from runtime.values.errors import ConfigError


class TokenCounter(Protocol):
    """Counts texts. `name` is the value that selects it in a config."""

    @property
    def name(self) -> str:
        """The selecting value."""
        ...

    def count(self, *texts: str) -> int:
        """Tokens of all texts together, rounded up once, without any framing."""
        ...

    def __hash__(self) -> int:
        """Counters are values: what they counted is kept per counter."""
        ...


def utf8_length(text: str) -> int:
    """Bytes of the text in UTF-8. A lone surrogate (broken JSON from outside) counts, never raises."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class BytesCounter:
    """Four UTF-8 bytes are a token."""

    name: str = "heuristic"

    def count(self, *texts: str) -> int:
        size = 0
        for text in texts:
            size += len(text) if text.isascii() else utf8_length(text)
        return -(-size // 4)


_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = b"0123456789"
_SPACES = b" \t\n\r\v\f"
_HIGH = bytes(range(128, 256))
# Fitted against a public 200k vocabulary on prose, code, logs, JSON and base64; thousandths of a token.
_LETTER, _DIGIT, _PUNCTUATION, _SPACE, _HIGH_BYTE, _PACKED_LETTER = 233, 562, 569, 98, 250, 680


@dataclass(frozen=True, slots=True)
class ByteClassCounter:
    """Weighs letters, digits, punctuation, white space and non-ASCII bytes: truer for tool output."""

    name: str = "byte-classes"

    def count(self, *texts: str) -> int:
        return -(-sum(map(self._thousandths, texts)) // 1000)

    def _thousandths(self, text: str) -> int:
        raw = text.encode("utf-8", "surrogatepass")
        size = len(raw)
        letters, digits, spaces, high = (
            size - len(raw.translate(None, kind)) for kind in (_LETTERS, _DIGITS, _SPACES, _HIGH)
        )
        punctuation = size - letters - digits - spaces - high
        # Letters without gaps (base64, hex, identifiers run together) break into many small tokens.
        packed = spaces * 50 < size and punctuation * 10 < size
        letter = _PACKED_LETTER if packed else _LETTER
        return (
            letters * letter
            + digits * _DIGIT
            + punctuation * _PUNCTUATION
            + spaces * _SPACE
            + high * _HIGH_BYTE
        )


SIGHTLESS = "-sightless"
"""What the name of a counter ends with for a model that cannot see."""


@dataclass(frozen=True, slots=True)
class SightlessCounter:
    """Counts for a model that gets a line in the place of each picture."""

    inner: TokenCounter

    @property
    def name(self) -> str:
        return self.inner.name + SIGHTLESS

    def count(self, *texts: str) -> int:
        return self.inner.count(*texts)


class _Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class VocabularyCounter:
    """Counts with a real vocabulary."""

    name: str
    encoding: _Encoding

    def count(self, *texts: str) -> int:
        clean = (text.encode("utf-8", "replace").decode() for text in texts)
        return sum(len(self.encoding.encode_ordinary(text)) for text in clean)


def _vocabulary(name: str) -> TokenCounter:
    # About a second of import and 75 MB: only for those who asked for it.
    try:
        module = import_module("bpe_openai")
    except ImportError as error:
        raise ConfigError(
            f"token_counter = {name!r} needs the extra: install wholeturn[tokens].",
            data={"key": "token_counter"},
        ) from error
    return VocabularyCounter(name, cast(_Encoding, module.get_encoding(name)))


HEURISTIC: TokenCounter = BytesCounter()
BYTE_CLASSES: TokenCounter = ByteClassCounter()

COUNTERS: Mapping[str, Callable[[str], TokenCounter]] = MappingProxyType(
    {
        "heuristic": lambda _: HEURISTIC,
        "byte-classes": lambda _: BYTE_CLASSES,
        "o200k_base": _vocabulary,
        "cl100k_base": _vocabulary,
    }
)


def token_counter(name: str) -> TokenCounter:
    """The counter of that name. Raises ConfigError for an unknown one or a missing extra."""
    if name.endswith(SIGHTLESS):
        return SightlessCounter(token_counter(name.removesuffix(SIGHTLESS)))
    make = COUNTERS.get(name)
    if make is None:
        raise ConfigError(
            f"token_counter = {name!r} is not one of {', '.join(COUNTERS)}.", data={"key": "token_counter"}
        )
    return make(name)
