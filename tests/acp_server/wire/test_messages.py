"""Messages: how a line is classified, that ids survive unchanged, and that whatever is sent is one line."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_server.wire.messages import (
    CANCEL_REQUEST,
    MAX_SENT_LINE,
    Garbage,
    Ignored,
    Message,
    Notification,
    NumberText,
    Reply,
    Request,
    Unsendable,
    encode,
    encode_response,
    id_key,
    is_id,
    parse,
    wire_id,
)

IDS = ["0", "-5", str(2**53 + 1), str(2**63), str(2**70), '"uuid"', '""', "null", "1.0", "1.50", "-1e3"]


@pytest.mark.parametrize("text", IDS)
def test_an_id_is_echoed_exactly(text: str) -> None:
    request = parse(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % text.encode())
    assert isinstance(request, Request)
    line = encode({"jsonrpc": "2.0", "result": {}, "id": wire_id(request.id)})
    assert line == b'{"jsonrpc":"2.0","result":{},"id":%b}\n' % text.encode()


def test_ids_of_different_types_have_different_keys() -> None:
    ids = [1, "1", NumberText("1.0"), None, "", 0]
    assert len({id_key(one) for one in ids}) == len(ids)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [True, False, [], {}, 1.5])
def test_what_is_no_id(value: object) -> None:
    assert not is_id(value)


def kind(message: Message) -> tuple[object, ...]:
    match message:
        case Garbage(code, _, request_id):
            return (code, request_id)
        case Request(request_id, method, params):
            return ("request", request_id, method, params)
        case Notification(method, params):
            return ("notification", method, params)
        case Reply(request_id, result, error):
            return ("reply", request_id, result, error)
        case Ignored():
            return ("ignored",)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # no JSON
        (b"{", (-32700, None)),
        (b"hello", (-32700, None)),
        (b"\xff\xfe{}", (-32700, None)),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xc3\x28"}', (-32700, None)),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', (-32700, None)),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}', (-32700, None)),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":NaN}}', (-32700, None)),
        (b'{"jsonrpc":"2.0","id":Infinity,"method":"m"}', (-32700, None)),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b"[" * 3000 + b"]" * 3000 + b"}",
            (-32700, None),
        ),
        (b'{"x":"\\ud800","y":' + b"[" * 3000 + b"]" * 3000 + b"}", (-32700, None)),
        (b'{"jsonrpc":"2.0","id":1}{"jsonrpc":"2.0","id":2}', (-32700, None)),
        # no object
        (b"[]", (-32600, None)),
        (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', (-32600, None)),
        (b"[1,2,3]", (-32600, None)),
        (b"1", (-32600, None)),
        (b'"text"', (-32600, None)),
        (b"null", (-32600, None)),
        (b"true", (-32600, None)),
        # no request
        (b"{}", (-32600, None)),
        (b'{"jsonrpc":"2.0","id":7}', (-32600, 7)),
        (b'{"jsonrpc":"1.0","id":"a","method":"m"}', (-32600, "a")),
        (b'{"id":7,"method":"m"}', (-32600, 7)),
        (b'{"jsonrpc":"2.0","id":7,"method":1}', (-32600, 7)),
        (b'{"jsonrpc":"2.0","id":7,"method":null}', (-32600, 7)),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":"x"}', (-32600, 7)),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":0}', (-32600, 7)),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', (-32600, None)),
        (b'{"jsonrpc":"2.0","id":[1],"method":"m"}', (-32600, None)),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', (-32600, None)),
        (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', (-32600, None)),
        # requests
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}', ("request", 1, "m", None)),
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}\r', ("request", 1, "m", None)),
        (b'{"jsonrpc":"2.0","id":null,"method":"m","params":null}', ("request", None, "m", None)),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1],"_meta":{}}', ("request", 1, "m", [1])),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{},"result":1}', ("request", 1, "m", {})),
        # notifications
        (b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}', ("notification", "n", {"a": 1})),
        (b'{"jsonrpc":"2.0","method":"n","params":"x"}', ("ignored",)),
        (b'{"method":"n"}', ("ignored",)),
        # replies
        (b'{"jsonrpc":"2.0","id":1,"result":null}', ("reply", 1, None, None)),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600}}', ("reply", None, None, {"code": -32600})),
        (b'{"error":{"code":-32600}}', ("reply", None, None, {"code": -32600})),
    ],
)
def test_classification(line: bytes, expected: tuple[object, ...]) -> None:
    assert kind(parse(line)) == expected


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"a\ud800b", "a\ufffdb"),
        (r"\udc00", "\ufffd"),
        (r"\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud800", r"\ud800"),
        (r"\\\uD800", "\\\ufffd"),
        (r"\ud83d\ude00", "\U0001f600"),
        ("\u2028", "\u2028"),
    ],
)
def test_lone_surrogates_are_replaced_and_nothing_else(written: str, read: str) -> None:
    message = parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"t":"%b"}}' % written.encode())
    assert isinstance(message, Request)
    assert message.params == {"t": read}


def test_a_lone_surrogate_beside_a_long_id() -> None:
    message = parse(b'{"jsonrpc":"2.0","id":%d,"method":"m","params":{"t":"\\ud800"}}' % 2**70)
    assert message == Request(NumberText(str(2**70)), "m", {"t": "\ufffd"})


@pytest.mark.parametrize("text", [str(2**70), "1.0"])
def test_the_id_in_a_cancellation_matches_the_request_it_names(text: str) -> None:
    request = parse(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % text.encode())
    line = b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}' % text.encode()
    assert isinstance(request, Request)
    assert parse(line) == Notification(CANCEL_REQUEST, {"requestId": request.id})


ODD: list[object] = [
    None,
    True,
    0,
    1.5,
    2**70,
    -(2**63),
    "",
    "\ud800",
    "2.0",
    "m",
    CANCEL_REQUEST,
    [],
    {},
    [1],
]
envelopes = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), st.sampled_from(ODD)
)


@settings(max_examples=200)
@given(envelopes, st.integers(0, 200))
def test_parse_never_raises_and_never_answers_an_answer(envelope: dict[str, object], cut: int) -> None:
    line = json.dumps(envelope).encode()
    parse(line[:cut])
    message = parse(line)
    if isinstance(message, Garbage):
        assert "method" in envelope or not {"result", "error"} & set(envelope)
    if isinstance(message, Notification | Ignored):
        assert "id" not in envelope


def test_encoding_is_one_line_without_surrogates() -> None:
    pair = "\ud83d\ude00"
    line = encode({"text": "a\nb\u2028\ud800c" + pair, "n": [("\udfff", 1)], "k\ud800": math.nan})
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line) == {"text": "a\nb\u2028\ufffdc\U0001f600", "n": [["\ufffd", 1]], "k\ufffd": None}


@pytest.mark.parametrize("value", [{1}, b"x", object(), 2**70, {1: 2}, "x" * MAX_SENT_LINE])
def test_what_cannot_be_sent(value: object) -> None:
    with pytest.raises(Unsendable):
        encode({"value": value})
    line = encode_response({"jsonrpc": "2.0", "result": value, "id": wire_id(NumberText("1.0"))})
    assert line.endswith(b'"id":1.0}\n')
    assert json.loads(line)["error"]["code"] == -32603


def test_a_structure_without_end_cannot_be_sent() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(Unsendable):
        encode({"value": loop})


def test_the_longest_line_that_may_be_sent() -> None:
    frame = len(encode({"t": ""}))
    assert len(encode({"t": "x" * (MAX_SENT_LINE - frame)})) == MAX_SENT_LINE
    with pytest.raises(Unsendable):
        encode({"t": "x" * (MAX_SENT_LINE - frame + 1)})
