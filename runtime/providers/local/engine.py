"""A GGUF model in this process: the one file that knows xllamacpp. Blocks; knows no trio and no parts.

The library brings llama.cpp's HTTP server along with the model. It is made to listen at a socket file that
is removed as soon as it listens, so that nobody can connect; where there are no such files it is loopback,
a port of the system's choice and a key that is nowhere written down.
"""

import contextlib
import http.client
import importlib
import json
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast
from urllib.parse import urlsplit

from runtime.values.file_access import reading

SILENT = -1
BATCH, GPU_BATCH = 32, 512
"""Tokens of a prompt that are read in one go: between two of them a cancelled request can end."""
REUSED_RUN = 32
"""Tokens in a row that are worth moving in the cache: what a trim leaves of a prompt is not read again."""
CACHE_MIB = 256
"""Memory for prompts of other sessions."""
LONGEST_SOCKET_PATH = 100
FACTS_SECONDS = 10.0
INSTALL = "pip install 'wholeturn[local]'"


class EngineError(Exception):
    """The model cannot be run; the text says why and goes behind the name of what was asked for."""


class Refused(Exception):
    """The library refused a request before it began; the text is the library's own."""


class LlamaServer(Protocol):
    """What is used of `xllamacpp.Server`."""

    listening_address: str

    def handle_chat_completions(self, body: bytes, callback: Callable[[bytes], bool]) -> object:
        """Answer a request; the callback gets each event's JSON and ends the answer by returning True."""
        ...


@dataclass(frozen=True, slots=True)
class Launch:
    """How a model is started. n_ctx: tokens of the window."""

    path: Path
    n_ctx: int
    n_threads: int


class Engine:
    """A loaded model. One `ask` at a time. native_tools: its template knows tools. n_ctx: its real window."""

    def __init__(self, server: LlamaServer, *, n_ctx: int = 0, native_tools: bool = False) -> None:
        self.n_ctx = n_ctx
        self.native_tools = native_tools
        self._server = server

    def ask(self, body: bytes, on_event: Callable[[bytes], bool]) -> None:
        """Answer a chat completions request. on_event: gets each event's JSON; True ends the answer.

        Raises Refused, and whatever `on_event` raises: the library itself would swallow that.
        """
        raised: list[BaseException] = []

        def take(event: bytes) -> bool:
            try:
                return bool(raised) or on_event(event)
            except BaseException as error:  # noqa: BLE001 - raised again below
                raised.append(error)
                return True

        try:
            self._server.handle_chat_completions(body, take)
        except (ValueError, RuntimeError) as error:
            if not raised:
                raise Refused(str(error)) from None
        if raised:
            raise raised[0]


def library() -> ModuleType:
    """xllamacpp, imported. Raises EngineError with the way to get it."""
    try:
        return importlib.import_module("xllamacpp")
    except ImportError:
        raise EngineError(
            f"runs in this process and needs a package that is not installed: {INSTALL}"
        ) from None


def load(launch: Launch) -> Engine:
    """The model, ready to be asked. Raises EngineError.

    Takes about half a second for a small one, and the library lets no other Python code run meanwhile.
    """
    module = library()
    check_file(launch.path)
    key = secrets.token_hex(16)
    with _socket_file() as address:
        params = parameters(module, launch, address, key)
        try:
            server = cast(LlamaServer, module.Server(params))
        except (RuntimeError, ValueError):
            raise EngineError(
                f"cannot be loaded from {launch.path}: llama.cpp refuses the file, or there is too little "
                f"memory for a window of {launch.n_ctx} tokens"
            ) from None
        n_ctx, native = facts(server.listening_address, key)
    return Engine(server, n_ctx=n_ctx or launch.n_ctx, native_tools=native)


def check_file(path: Path) -> None:
    """Raises EngineError for what is no GGUF at all: the library's own error names no reason."""
    try:
        with reading(path) as file:
            magic = file.read(4)
    except OSError as error:
        raise EngineError(f"cannot be read from {path}: {error.strerror}") from None
    if magic != b"GGUF":
        raise EngineError(f"cannot be loaded: {path} is no GGUF file")


def parameters(module: ModuleType, launch: Launch, address: str, key: str) -> object:
    """What the library is started with. address: a socket file's path, or a host."""
    params = module.CommonParams()
    params.model.path = str(launch.path)
    params.n_ctx = launch.n_ctx
    params.n_batch = params.n_ubatch = GPU_BATCH if has_gpu(module) else BATCH
    params.n_cache_reuse = REUSED_RUN
    params.cache_ram_mib = CACHE_MIB
    # Both load the model a second time, or run it once, while nothing else can run.
    params.fit_params = params.warmup = False
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = launch.n_threads
    params.verbosity = SILENT
    params.hostnames, params.port, params.api_keys = [address], 0, [key]
    params.ui = params.endpoint_slots = False
    params.cors_origins = ""
    return cast(object, params)


def has_gpu(module: ModuleType) -> bool:
    """Whether the library computes on something that is quick enough for large pieces of a prompt."""
    kinds = module.ggml_backend_dev_type
    quick = (kinds.GGML_BACKEND_DEVICE_TYPE_GPU, kinds.GGML_BACKEND_DEVICE_TYPE_IGPU)
    return any(device["type"] in quick for device in module.get_device_info())


@contextmanager
def _socket_file() -> Iterator[str]:
    """A path for a socket, gone at the end; the loopback host where there are no socket files."""
    folder = tempfile.mkdtemp(prefix="wholeturn-")
    try:
        path = os.path.join(folder, "llama.sock")
        usable = hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= LONGEST_SOCKET_PATH
        yield path if usable else "127.0.0.1"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def facts(address: str, key: str) -> tuple[int, bool]:
    """(tokens of the real window, whether the template knows tools); (0, False) if it does not say."""
    props: object = None
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        connection = _connection(address)
        try:
            connection.request("GET", "/props", headers={"Authorization": f"Bearer {key}"})
            props = json.loads(connection.getresponse().read())
        finally:
            connection.close()
    known = props if isinstance(props, dict) else {}
    settings, template = known.get("default_generation_settings"), known.get("chat_template_caps")
    n_ctx = settings.get("n_ctx") if isinstance(settings, dict) else 0
    native = isinstance(template, dict) and template.get("supports_tools") is True
    return (n_ctx if isinstance(n_ctx, int) else 0), native


def _connection(address: str) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    if parts.scheme == "unix":
        return _SocketFileConnection(parts.path)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=FACTS_SECONDS)


class _SocketFileConnection(http.client.HTTPConnection):
    """HTTP over a socket file."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=FACTS_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to the file; `close` undoes it."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
