"""What could be used when no model is configured: keys in the environment, local servers that answer.

`suggestions` is pure; `detect` asks the machine itself, over loopback only and for 0.3 s at most.
Looks whether a key is set, never at its value.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson
import trio

PROBE_SECONDS = 0.3
MAX_ANSWER_BYTES = 256 * 1024
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Hosted:
    """An API that wants a key. model: a current one, to start with."""

    variable: str
    name: str
    base_url: str
    model: str
    kind: str = "openai"


@dataclass(frozen=True, slots=True)
class Local:
    """A server and the port it has unless told otherwise. path: what stands behind it in the base URL.

    note: a line for the user's file where the server does not say what window it has.
    """

    name: str
    label: str
    port: int
    kind: str = "openai"
    path: str = "/v1"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A local server that answered. context_window: 0 when it does not say."""

    local: Local
    model: str
    context_window: int = 0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """title: what was found, a sentence. toml: the lines for the user's config file."""

    title: str
    toml: str


HOSTED = (
    Hosted("OPENAI_API_KEY", "openai", "https://api.openai.com/v1", "gpt-5-mini"),
    Hosted(
        "ANTHROPIC_API_KEY", "anthropic", "https://api.anthropic.com", "claude-sonnet-4-5", kind="anthropic"
    ),
    Hosted("OPENROUTER_API_KEY", "openrouter", "https://openrouter.ai/api/v1", "openrouter/auto"),
    Hosted(
        "GEMINI_API_KEY",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "gemini-flash-latest",
    ),
    Hosted("MISTRAL_API_KEY", "mistral", "https://api.mistral.ai/v1", "mistral-medium-latest"),
    Hosted("DEEPSEEK_API_KEY", "deepseek", "https://api.deepseek.com/v1", "deepseek-chat"),
    Hosted("GROQ_API_KEY", "groq", "https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
    Hosted("XAI_API_KEY", "xai", "https://api.x.ai/v1", "grok-4"),
)
LOCAL = (
    Local(
        "ollama",
        "Ollama",
        11434,
        kind="ollama",
        path="",
        note="# context_window = 16384  # tokens to load the model for; Ollama's own default is often small",
    ),
    Local("lmstudio", "LM Studio", 1234),
    Local("llamacpp", "llama.cpp", 8080),
    Local("vllm", "vLLM", 8000),
)

Probe = Callable[[int], Awaitable[bytes]]
"""Port -> body of its `/v1/models`, b'' when nothing usable answers there."""


def suggestions(environ: Mapping[str, str], found: Sequence[Found]) -> tuple[Suggestion, ...]:
    """What to set, best first: a key that is there, then a server that runs."""
    hosted = [_hosted(api) for api in HOSTED if environ.get(api.variable, "").strip()]
    return (*hosted, *map(_local, found))


async def detect(environ: Mapping[str, str], probe: Probe | None = None) -> tuple[Suggestion, ...]:
    """The suggestions for this machine, all ports asked at once. Never raises for what it finds."""
    ask = probe or ask_models
    bodies: dict[int, bytes] = {}

    async def one(port: int) -> None:
        bodies[port] = await ask(port)

    with trio.move_on_after(PROBE_SECONDS):
        async with trio.open_nursery() as nursery:
            for local in LOCAL:
                nursery.start_soon(one, local.port)
    found = (read_models(local, bodies.get(local.port, b"")) for local in LOCAL)
    return suggestions(environ, [server for server in found if server])


def read_models(local: Local, body: bytes) -> Found | None:
    """The first model for talk in a `/v1/models` body; None when it is no such body or lists none."""
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    listed = value.get("data") if isinstance(value, dict) else None
    for model in listed if isinstance(listed, list) else []:
        name = model.get("id") if isinstance(model, dict) else None
        if isinstance(name, str) and name and "embed" not in name.lower():
            return Found(local, name, _window(model))
    return None


def _window(model: Mapping[str, object]) -> int:
    meta = model.get("meta")
    sizes = [model.get("max_model_len"), meta.get("n_ctx") if isinstance(meta, dict) else None]
    return next((size for size in sizes if isinstance(size, int) and size > 0), 0)


async def ask_models(port: int) -> bytes:
    """The body of GET /v1/models on a loopback port. Plain HTTP/1.0: no chunks, no client library."""
    request = f"GET /v1/models HTTP/1.0\r\nHost: {LOOPBACK}:{port}\r\nAccept: application/json\r\n\r\n"
    answer = b""
    try:
        stream = await trio.open_tcp_stream(LOOPBACK, port)
        async with stream:
            await stream.send_all(request.encode())
            while len(answer) < MAX_ANSWER_BYTES and (data := await stream.receive_some()):
                answer += data
    except (OSError, trio.BrokenResourceError):
        return b""
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if head.split(b" ")[1:2] == [b"200"] else b""


def _hosted(api: Hosted) -> Suggestion:
    lines = _lines(api.name, api.kind, base_url=api.base_url, api_key_env=api.variable, model=api.model)
    return Suggestion(f"{api.variable} is set in the environment.", lines)


def _local(found: Found) -> Suggestion:
    local = found.local
    size = {"context_window": found.context_window} if found.context_window else {}
    base_url = f"http://{LOOPBACK}:{local.port}{local.path}"
    lines = _lines(local.name, local.kind, base_url=base_url, model=found.model, **size)
    note = f"{local.note}\n" if local.note and not size else ""
    return Suggestion(f"{local.label} answers on port {local.port}.", lines + note)


def _lines(name: str, kind: str, **values: str | int) -> str:
    keys = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    head = ["[agents.default]", f'provider = "{name}"', "", f"[providers.{name}]", f'kind = "{kind}"']
    return "\n".join([*head, *keys]) + "\n"
