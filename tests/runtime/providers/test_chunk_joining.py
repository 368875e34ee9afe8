"""Joining HTTP chunks changes how they are cut and nothing else; h11 is the judge."""

import itertools

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.chunk_joining import MAX_CHUNK_BYTES, ChunkJoiner

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: Chunked\r\n\r\n"


def chunked(*pieces: bytes, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    body = b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    return body + b"0\r\n" + trailers + b"\r\n"


def parsed(reads: list[bytes]) -> tuple[bytes, int, bool]:
    """What h11 makes of these reads: body, number of data events, whether the message ended."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "h")]))
    connection.send(h11.EndOfMessage())
    body, count = b"", 0
    for data in reads:
        connection.receive_data(data)
        while (event := connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Data):
                body, count = body + bytes(event.data), count + 1
            elif isinstance(event, h11.EndOfMessage):
                return body, count, True
    return body, count, False


def joined(reads: list[bytes]) -> list[bytes]:
    joiner = ChunkJoiner()
    joiner.expect_response()
    return [data for read in reads if (data := joiner.feed(read))]


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=12),
    st.lists(st.integers(0, 2000), max_size=10),
    st.sampled_from([b"", b";name=value", b" ;x"]),
    st.sampled_from([b"", b"X-Trailer: 1\r\n"]),
    st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\n"]),
)
def test_the_same_body_for_any_cut(pieces, at, extension, trailers, interim):
    wire = interim + HEAD + chunked(*pieces, extension=extension, trailers=trailers)
    body, _, ended = parsed(joined(cut(wire, at)))
    assert (body, ended) == (b"".join(pieces), True)


def test_one_read_is_one_chunk():
    wire = HEAD + chunked(*[b"data: x\n\n"] * 1000)
    assert parsed([wire])[1] == 1000
    assert parsed(joined([wire])) == (b"data: x\n\n" * 1000, 1, True)


def test_what_is_complete_is_not_held_back():
    joiner = ChunkJoiner()
    joiner.expect_response()
    assert joiner.feed(HEAD + b"3\r\nabc\r\n4\r\nde") == HEAD + b"3\r\nabc\r\n"
    assert joiner.feed(b"fg\r\n") == b"4\r\ndefg\r\n"


def test_a_large_chunk_is_not_waited_for():
    joiner = ChunkJoiner()
    joiner.expect_response()
    size = MAX_CHUNK_BYTES + 1
    start = b"2\r\nab\r\n%x\r\nxyz" % size
    assert joiner.feed(HEAD + start) == HEAD + start
    assert joiner.feed(b"more") == b"more"


UNTOUCHED = {
    "stated length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n3\r\nab",
    "until close": b"HTTP/1.1 200 OK\r\n\r\n5\r\nhello\r\n",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
    "upgrade": b"HTTP/1.1 101 Switching\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "another coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n",
    "no size": HEAD + b"zz\r\nabc\r\n",
    "negative size": HEAD + b"-3\r\nabc\r\n",
    "underscore size": HEAD + b"1_0\r\nabc\r\n",
    "wrong end": HEAD + b"3\r\nabcdef\r\n",
    "endless size line": HEAD + b"1" * 600,
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_passes_as_it_is(name):
    wire = UNTOUCHED[name]
    assert b"".join(joined([wire])) == wire
    assert b"".join(joined([wire[:-3], wire[-3:]])) == wire


def test_a_head_without_end_is_passed_on():
    wire = b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 30_000
    assert b"".join(joined([wire])) == wire


def test_every_response_of_a_connection():
    joiner = ChunkJoiner()
    for _ in range(3):
        joiner.expect_response()
        assert joiner.feed(HEAD + chunked(b"a", b"b")) == HEAD + b"2\r\nab\r\n0\r\n\r\n"


def test_what_was_held_back_comes_at_the_end_of_the_connection():
    joiner = ChunkJoiner()
    joiner.expect_response()
    assert joiner.feed(HEAD + b"5\r\nab") == HEAD
    assert joiner.flush() == b"5\r\nab"
    assert joiner.flush() == b""
