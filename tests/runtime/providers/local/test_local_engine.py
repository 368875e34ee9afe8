"""The one file that knows the library: how it is started, and what of its errors comes through."""

import importlib
import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from runtime.providers.local import engine as local_engine
from runtime.providers.local.engine import BATCH, GPU_BATCH, EngineError, Launch, Refused, facts, load
from tests.runtime.providers.local.fake_llama import FakeServer, fake_library


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF and more")
    return Launch(path, 2048, 3)


def with_library(monkeypatch: pytest.MonkeyPatch, server: FakeServer | Exception, device: int = 0):
    library = fake_library(server, device)
    monkeypatch.setattr(local_engine, "library", lambda: library)
    return library


@pytest.mark.parametrize(("device", "batch"), [(0, BATCH), (1, GPU_BATCH), (2, GPU_BATCH)])
def test_how_it_is_started(launch, monkeypatch, device, batch):
    library = with_library(monkeypatch, FakeServer(), device)
    engine = load(launch)
    (params,) = library.given
    assert (params.model.path, params.n_ctx, params.n_batch) == (str(launch.path), 2048, batch)
    assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads == 3
    assert params.verbosity == -1
    assert (params.port, len(params.api_keys), len(params.api_keys[0])) == (0, 1, 32)
    (address,) = params.hostnames
    assert address.endswith(".sock")
    assert not Path(address).parent.exists()
    assert (engine.n_ctx, engine.native_tools) == (2048, False)


def test_without_socket_files_it_is_loopback(launch, monkeypatch):
    library = with_library(monkeypatch, FakeServer())
    monkeypatch.setattr(local_engine, "LONGEST_SOCKET_PATH", 3)
    load(launch)
    assert library.given[0].hostnames == ["127.0.0.1"]


def test_a_load_that_fails(launch, monkeypatch):
    with_library(monkeypatch, RuntimeError("Failed to init server, please check the input params."))
    with pytest.raises(EngineError, match=r"cannot be loaded from .*m\.gguf: .* 2048 tokens"):
        load(launch)


def test_what_is_no_model(launch, monkeypatch):
    with_library(monkeypatch, FakeServer())
    launch.path.write_bytes(b"PK\x03\x04")
    with pytest.raises(EngineError, match="is no GGUF file"):
        load(launch)
    launch.path.unlink()
    with pytest.raises(EngineError, match="No such file"):
        load(launch)


def test_without_the_extra(launch, monkeypatch):
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(EngineError, match=r"pip install 'wholeturn\[local\]'"):
        load(launch)


def test_what_the_callback_raises_comes_through():
    def broken(event: bytes) -> bool:
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        FakeServer().engine().ask(b"{}", broken)


def test_a_refusal_is_told_apart():
    with pytest.raises(Refused, match="odd"):
        FakeServer(refusal=ValueError("odd")).engine().ask(b"{}", lambda _: False)


def test_true_ends_the_answer():
    seen: list[bytes] = []

    def take(event: bytes) -> bool:
        seen.append(event)
        return len(seen) == 6

    FakeServer(hang=True).engine().ask(b"{}", take)
    assert len(seen) == 6


class Props(BaseHTTPRequestHandler):
    """Answers as the library's server does."""

    body: object = {}

    def do_GET(self):
        assert (self.path, self.headers["Authorization"]) == ("/props", "Bearer k")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.body).encode())

    def log_message(self, *_):
        """Quietly."""

    def address_string(self):
        return "local"


class UnixServer(socketserver.UnixStreamServer):
    """The same over a socket file."""


KNOWN = {"default_generation_settings": {"n_ctx": 4096}, "chat_template_caps": {"supports_tools": True}}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (KNOWN, (4096, True)),
        ({"default_generation_settings": {"n_ctx": 512}}, (512, False)),
        ({}, (0, False)),
        ([], (0, False)),
    ],
)
@pytest.mark.parametrize("unix", [True, False])
def test_the_servers_own_word(body, found, unix, tmp_path, monkeypatch):
    monkeypatch.setattr(Props, "body", body)
    path = str(tmp_path / "s.sock")
    server: socketserver.TCPServer | UnixServer = (
        UnixServer(path, Props) if unix else HTTPServer(("127.0.0.1", 0), Props)
    )
    address = f"unix://{path}" if unix else f"http://127.0.0.1:{server.socket.getsockname()[1]}"
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    try:
        assert facts(address, "k") == found
    finally:
        thread.join(5)
        server.server_close()


def test_a_server_that_is_silent(tmp_path):
    assert facts(f"unix://{tmp_path}/none.sock", "k") == (0, False)
