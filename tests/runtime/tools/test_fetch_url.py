"""fetch_url: only the public web, checked where the connection is made; bounded; text out of what came."""

import gzip
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import process_time

import httpcore2
import pytest
import trio

from runtime.tools.arguments import ToolSettings
from runtime.tools.web import page as fetching
from runtime.tools.web.fetch_url import TIME_LIMIT, FetchUrl, html_to_text
from runtime.tools.web.page import CheckedBackend, fetch, is_public
from runtime.values.errors import ToolError
from tests.runtime.tools.support import context

HERE = FetchUrl(ToolSettings(private_addresses=True))
PUBLIC = ["93.184.216.34", "2606:2800:220:1::1", "8.8.8.8"]
PRIVATE = [
    "127.0.0.1",
    "127.9.9.9",
    "10.0.0.1",
    "192.168.1.1",
    "172.16.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "::1",
]
PRIVATE += [
    "fe80::1%eth0",
    "fec0::1",
    "fd00::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "::",
]
PRIVATE += [
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "ff02::1",
    "240.0.0.1",
    "198.18.0.1",
    "no address",
    "",
]

NOWHERE = context(Path("/"))

Answer = Callable[[str], bytes | None]


def page(body: bytes, *, kind: str = "text/plain", status: str = "200 OK", **headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def server(answer: Answer):
    """A web server of this machine: `answer(path)` gives the bytes of the answer, None: none ever."""
    asked: list[str] = []

    async def serve(stream: trio.SocketStream) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += await stream.receive_some()
        path = request.split()[1].decode()
        asked.append(path)
        data = answer(path)
        if data is None:
            await trio.sleep_forever()
        else:
            with suppress(trio.BrokenResourceError):
                await stream.send_all(data)
                await stream.send_eof()

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}", asked
        nursery.cancel_scope.cancel()


async def text_at(url: str, tool: FetchUrl = HERE):
    with trio.fail_after(30):
        return await tool.run({"url": url}, NOWHERE)


# ---------------------------------------------------------------- addresses


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address):
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_private(address):
    assert not is_public(address)


class Net(httpcore2.AsyncNetworkBackend):
    """A network whose name server gives one answer after the other, and that remembers who was called."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.called: list[str] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        await trio.lowlevel.checkpoint()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def connect_tcp(self, host, *_, **__):
        await trio.lowlevel.checkpoint()
        self.called.append(host)
        if host == "8.8.4.4":
            raise httpcore2.ConnectError("refused")
        return httpcore2.AsyncMockStream([page(b"hello")])


async def got(net: Net, url: str = "http://example.org/x", *, private: bool = False) -> bytes:
    return (await fetch(url, CheckedBackend(private=private, resolve=net.resolve, inner=net))).body


async def test_the_connection_goes_to_the_address_that_was_checked():
    net = Net(["93.184.216.34"], ["127.0.0.1"])
    assert await got(net) == b"hello"
    assert net.called == ["93.184.216.34"]
    # Asked again, the name leads inwards.
    with pytest.raises(
        ToolError, match=r"example.org leads to 127.0.0.1, which is no address of the public web"
    ):
        await got(net)
    assert net.called == ["93.184.216.34"]


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::ffff:127.0.0.1"]])
async def test_a_name_with_any_private_address_is_not_called(addresses):
    net = Net(addresses)
    with pytest.raises(ToolError, match="no address of the public web"):
        await got(net)
    assert net.called == []
    assert await got(net, private=True) == b"hello"


@pytest.mark.parametrize("name", ["a..b", "x" * 300, "x" * 64 + ".example"])
async def test_names_that_no_name_server_takes(name):
    with pytest.raises(ToolError, match="cannot be found"):
        await CheckedBackend(private=False).connect_tcp(name, 80)


async def test_another_address_when_the_first_does_not_answer():
    net = Net(["8.8.4.4", "8.8.8.8"])
    assert await got(net) == b"hello"
    assert net.called == ["8.8.4.4", "8.8.8.8"]
    with pytest.raises(ToolError, match="could not be fetched: refused"):
        await got(Net(["8.8.4.4"]))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1"])
async def test_this_machine_by_any_name(host):
    with pytest.raises(ToolError, match=r"no address of the public web|cannot be found"):
        await text_at(f"http://{host}:9/", FetchUrl())


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///etc/passwd", "only http:// and https://"),
        ("ftp://example.org/", "only http:// and https://"),
        ("example.org", "only http:// and https://"),
        ("http://", "only http:// and https://"),
        ("http://[::1", "not an address"),
        ("https://user:pw@example.org/", "user name or password"),
        ("javascript:alert(1)", "only http:// and https://"),
        (f"http://example.org/{'x' * 70_000}", "not an address"),
    ],
)
async def test_addresses_that_are_none(url, said):
    for run in (HERE.run, HERE.request):
        with pytest.raises(ToolError, match=said):
            await run({"url": url}, NOWHERE)


# ---------------------------------------------------------------- pages

HTML = b"""<!doctype html><title>T &amp; t</title><style>x{}</style><script>no()</script>
<nav><a href="/menu">menu</a></nav>
<h2>Head   line</h2><p>One <b>two</b>&nbsp;three <a href="/doc">doc</a>.</p>
<ul><li>first</li><li>second <a href="#top">up</a></ul><pre>  keep
    this</pre><table><tr><td>a</td><td>b</td></tr></table>"""


async def test_html_as_text():
    async with server(lambda path: page(HTML, kind="text/html; charset=utf-8")) as (base, _):
        text = (await text_at(f"{base}/")).text
    assert text == (
        f"T & t\n## Head line\nOne two three doc ({base}/doc).\n- first\n- second up\n  keep\n    this\na | b"
    )


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (page("ü".encode()), "ü"),
        (page("ü".encode("latin-1"), kind="text/plain; charset=iso-8859-1"), "ü"),
        (page(b"\xff", kind="text/plain; charset=no-such"), "\ufffd"),
        (page(b'{"a":1}', kind="application/json"), '{"a":1}'),
        (page(gzip.compress(b"packed"), Content_Encoding="gzip"), "packed"),
        (page(b""), "\n[the page has no text]"),
    ],
)
async def test_other_text(answer, text):
    async with server(lambda path: answer) as (base, _):
        assert (await text_at(base)).text == text


async def test_an_error_page_is_shown_and_failed():
    async with server(lambda path: page(b"not here", status="404 Not Found")) as (base, _):
        outcome = await text_at(base)
    assert (outcome.text, outcome.failed) == ("not here\n[status 404]", True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (page(b"\x89PNG", kind="image/png"), r"is image/png \(4 bytes\), which is no text"),
        (page(b"x", Content_Encoding="br"), "packed in a way that is not known"),
        (page(b"not packed", Content_Encoding="gzip"), "cannot be read"),
        (b"nonsense\r\n\r\n", "could not be fetched"),
        (b"", "could not be fetched"),
    ],
)
async def test_what_is_no_page(answer, said):
    async with server(lambda path: answer) as (base, _):
        with pytest.raises(ToolError, match=said):
            await text_at(base)


@pytest.mark.parametrize("packed", [False, True])
async def test_no_more_than_can_be_taken_in(monkeypatch, packed):
    monkeypatch.setattr(fetching, "MAX_BYTES", 1000)
    body = b"x" * 1_000_000
    answer = page(gzip.compress(body), Content_Encoding="gzip") if packed else page(body)
    async with server(lambda path: answer) as (base, _):
        assert (await text_at(base)).text == "x" * 1000 + "\n[the rest is left out]"


async def test_redirects_within_a_site():
    moves = {"/a": "/b", "/b": "c?x=1", "/c?x=1": None}

    def answer(path: str) -> bytes:
        where = moves[path]
        return page(b"there") if where is None else page(b"", status="302 Found", Location=where)

    async with server(answer) as (base, asked):
        assert (await text_at(f"{base}/a")).text == "there"
    assert asked == list(moves)


async def test_redirects_without_end():
    async with server(lambda path: page(b"", status="301 Moved", Location=f"{path}x")) as (base, asked):
        with pytest.raises(ToolError, match="from one address to the next without end"):
            await text_at(base)
    assert len(asked) == 5


@pytest.mark.parametrize("where", ["https://other.example/", "http://127.0.0.1:1/x"])
async def test_another_site_is_not_followed(where):
    async with server(lambda path: page(b"", status="307 Moved", Location=where)) as (base, asked):
        text = (await text_at(base)).text
    assert text.endswith(f"leads to another site; to follow it, fetch {where}]")
    assert len(asked) == 1


async def test_a_redirect_to_a_file_is_refused():
    async with server(lambda path: page(b"", status="302 Found", Location="file:///etc/passwd")) as (base, _):
        with pytest.raises(ToolError, match="only http:// and https://"):
            await text_at(base)


async def test_a_server_that_never_answers(monkeypatch):
    monkeypatch.setattr("runtime.tools.web.fetch_url.TIME_LIMIT", 0.2)
    assert TIME_LIMIT == 30
    async with server(lambda path: None) as (base, _):
        with pytest.raises(ToolError, match=r"did not answer within 0.2 s"):
            await text_at(base)


async def test_a_cancel_ends_the_wait():
    async with server(lambda path: None) as (base, asked):
        with trio.fail_after(10), trio.move_on_after(0.2) as scope:
            await text_at(base)
    assert scope.cancelled_caught
    assert asked == ["/"]


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("charset", ["idna", "undefined", "zlib_codec", "none such"])
async def test_charsets_that_are_none_are_taken_for_utf_8(charset):
    answer = page("caf\u00e9".encode(), kind=f"text/plain; charset={charset}")
    async with server(lambda path: answer) as (base, _):
        assert (await text_at(base)).text == "caf\u00e9"


def test_html_that_was_never_closed():
    assert html_to_text("<p>a<script>b", "http://x/") == "a"
    assert html_to_text("<div><p>a<nav>menu<p>b</nav>c", "http://x/") == "a\nc"
    assert html_to_text("</nav></script>plain <a href='http://[bad'>x</a>", "http://x/") == "plain x"
    assert html_to_text("<p>" * 200_000, "http://x/", lambda: True) == ""


@pytest.mark.parametrize("html", ["<![foo[ x ]]>a", "<![ if ie]>a<![endif]>", "<![>a", "<![CDATA[x]]>a"])
def test_sections_that_html_does_not_know_are_no_text(html):
    assert html_to_text(html, "http://x/") == "a"


@pytest.mark.parametrize(
    "piece", ["<!--", "<a ", "<a b='", "<svg></style>", "<![CDATA[", "<?", "</", "<td></td>"]
)
def test_html_that_is_made_to_take_long(piece):
    """In the time of a process, since others run: what takes time by its square takes minutes here."""
    began = process_time()
    html_to_text(f"<svg>{piece * 20_000}" if "svg" in piece else piece * 20_000, "http://x/")
    assert process_time() - began < 5


async def test_before_it_runs():
    assert HERE.view({"url": "https://example.org/"}, NOWHERE).title == "Fetch https://example.org/"
    assert HERE.view({"url": 3}, NOWHERE).title == "Fetch a page"
    request = await HERE.request({"url": "https://EXAMPLE.org/a b"}, NOWHERE)
    assert (request.action, request.subject, request.risk) == ("fetch", "https://example.org/a%20b", "")
    assert (await HERE.request({"url": "https://example.org/\u200b"}, NOWHERE)).risk != ""
    assert HERE.kind == "fetch"
