"""What is suggested when nothing is configured."""

import tomllib

import pytest
import trio

from runtime.providers import catalog
from runtime.providers.detect import HOSTED, LOCAL, Found, ask_models, detect, read_models, suggestions

OLLAMA, LMSTUDIO, LLAMACPP, VLLM = LOCAL
MODELS = b'{"object":"list","data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b","max_model_len":16000}]}'


def test_nothing_found():
    assert suggestions({}, []) == ()


def test_keys_come_first_in_the_order_of_the_table():
    environ = {"MISTRAL_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "  "}
    made = suggestions(environ, [Found(VLLM, "m")])
    assert [suggestion.title for suggestion in made] == [
        "OPENAI_API_KEY is set in the environment.",
        "MISTRAL_API_KEY is set in the environment.",
        "vLLM answers on port 8000.",
    ]


def names(made) -> list[str]:
    return [next(iter(tomllib.loads(suggestion.toml)["providers"])) for suggestion in made]


def test_the_lines_are_a_config_that_names_one_provider():
    found = [Found(local, 'odd "model" ü', 16000) for local in LOCAL]
    made = suggestions({api.variable: "sk-secret" for api in HOSTED}, found)
    assert len(made) == len(HOSTED) + len(LOCAL)
    for suggestion in made:
        config = tomllib.loads(suggestion.toml)
        provider = config["providers"][config["agents"]["default"]["provider"]]
        assert provider["kind"] in catalog.KINDS
        assert provider["base_url"].startswith("http")
        assert provider["model"]
        assert "sk-secret" not in suggestion.toml + suggestion.title
    kinds = {name: tomllib.loads(one.toml)["providers"] for name, one in zip(names(made), made, strict=True)}
    assert [name for name in kinds if kinds[name][name]["kind"] == "anthropic"] == ["anthropic"]
    assert tomllib.loads(made[-1].toml)["providers"]["vllm"] == {
        "kind": "openai",
        "base_url": "http://127.0.0.1:8000/v1",
        "model": 'odd "model" ü',
        "context_window": 16000,
    }


def test_ollama_is_spoken_to_in_its_own_way_and_its_window_is_asked_for():
    (made,) = suggestions({}, [Found(OLLAMA, "qwen3:8b")])
    assert tomllib.loads(made.toml)["providers"]["ollama"] == {
        "kind": "ollama",
        "base_url": "http://127.0.0.1:11434",
        "model": "qwen3:8b",
    }
    with_window = made.toml.replace("# context_window", "context_window")
    assert tomllib.loads(with_window)["providers"]["ollama"]["context_window"] == 16384
    (made,) = suggestions({}, [Found(OLLAMA, "qwen3:8b", 8192)])
    assert "#" not in made.toml


BODIES = {
    MODELS: Found(OLLAMA, "qwen3:8b", 16000),
    b'{"data":[{"id":"a","meta":{"n_ctx":4096}}]}': Found(OLLAMA, "a", 4096),
    b'{"data":[{"id":"a","max_model_len":null}]}': Found(OLLAMA, "a"),
    b'{"data":[]}': None,
    b'{"data":null}': None,
    b'{"data":[3,{"id":4},{}]}': None,
    b"[]": None,
    b"<html>": None,
    b"": None,
}


@pytest.mark.parametrize("body", BODIES)
def test_bodies(body):
    assert read_models(OLLAMA, body) == BODIES[body]


async def test_all_ports_are_asked_at_once_and_slow_ones_do_not_hold_up(autojump_clock):
    async def probe(port: int) -> bytes:
        await trio.sleep({OLLAMA.port: 60, LMSTUDIO.port: 0.2, VLLM.port: 0.25}.get(port, 0))
        return MODELS if port in (OLLAMA.port, VLLM.port) else b""

    made = await detect({}, probe)
    assert [suggestion.title for suggestion in made] == ["vLLM answers on port 8000."]
    assert trio.current_time() == pytest.approx(0.3)


ANSWERS = {
    b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + MODELS: MODELS,
    b"HTTP/1.1 404 Not Found\r\n\r\n" + MODELS: b"",
    b"SSH-2.0-OpenSSH\r\n": b"",
    b"": b"",
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_asking_a_port(answer):
    async def serve(stream: trio.SocketStream) -> None:
        asked = await stream.receive_some()
        assert asked.startswith(b"GET /v1/models HTTP/1.0\r\n")
        await stream.send_all(answer)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, serve, listeners)
            port = listeners[0].socket.getsockname()[1]
            assert await ask_models(port) == ANSWERS[answer]
            nursery.cancel_scope.cancel()
        assert await ask_models(port) == b"", "nobody listens there now"
