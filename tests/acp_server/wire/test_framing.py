"""Framing: any cutting of the bytes gives the same lines, and no line grows without bound."""

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_server.wire.framing import MAX_LINE, Line, LineSplitter, Oversized

LIMIT = 6


def split(data: bytes, cuts: list[int], limit: int = LIMIT) -> tuple[list[Line], bytes]:
    splitter = LineSplitter(limit)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    lines: list[Line] = []
    for start, end in itertools.pairwise(edges):
        lines += splitter.feed(data[start:end])
    return lines, splitter.finish()


def by_the_book(data: bytes) -> tuple[list[Line], bytes]:
    """What the lines are, computed from the whole at once."""
    *ends, rest = data.split(b"\n")
    lines: list[Line] = []
    for end in ends:
        if len(end) > LIMIT:
            lines.append(Oversized(LIMIT))
        elif end.strip(b" \t\r"):
            lines.append(end.removesuffix(b"\r"))
    if len(rest) > LIMIT:
        return [*lines, Oversized(LIMIT)], b""
    return lines, rest.rstrip(b"\r")


pieces = st.lists(st.sampled_from([b"a", b"{}", b"\n", b"\r\n", b" ", b"\r", "\u2028".encode(), b"abcdefgh"]))


@settings(max_examples=200)
@given(data=pieces.map(b"".join), cuts=st.lists(st.integers(0, 1000)))
def test_any_chunking_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    assert split(data, cuts) == by_the_book(data)


@pytest.mark.parametrize(
    ("data", "lines", "rest"),
    [
        (b"{}\n[]\n", [b"{}", b"[]"], b""),
        (b"{}\r\n[]\r\n", [b"{}", b"[]"], b""),
        (b"\n\r\n \t\n{}\n", [b"{}"], b""),
        (b"{}\n[", [b"{}"], b"["),
        ("\u2028\n".encode(), ["\u2028".encode()], b""),
        (b"abcdef\n", [b"abcdef"], b""),
        (b"abcdefg\n{}\n", [Oversized(LIMIT), b"{}"], b""),
        (b"abcdefgabcdefg", [Oversized(LIMIT)], b""),
        (b"", [], b""),
    ],
)
def test_lines(data: bytes, lines: list[Line], rest: bytes) -> None:
    assert split(data, []) == (lines, rest)
    assert split(data, list(range(len(data)))) == (lines, rest)


def test_an_oversized_line_is_told_before_it_ends_and_kept_nowhere() -> None:
    splitter = LineSplitter()
    piece = b"x" * (1024 * 1024)
    told: list[Line] = []
    tracemalloc.start()
    try:
        for _ in range(MAX_LINE // len(piece) + 80):
            told += splitter.feed(piece)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told == [Oversized(MAX_LINE)]
    assert held < len(piece)
    assert splitter.feed(b"tail\n{}\n") == [b"{}"]


def test_a_long_line_in_small_reads_is_copied_once() -> None:
    splitter = LineSplitter()
    piece = b"x" * 4096
    for _ in range(10_000):
        assert splitter.feed(piece) == []
    (line,) = splitter.feed(b"\n")
    assert isinstance(line, bytes)
    assert len(line) == 10_000 * 4096
