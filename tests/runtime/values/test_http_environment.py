"""Proxies and certificates that the environment names: what can be used, and what is said of the rest."""

import importlib.util
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_server.assembly.providers_and_stores import try_once
from runtime.providers import catalog
from runtime.providers.settings import ProviderSettings
from runtime.tools.web.page import CheckedBackend, fetch
from runtime.values.errors import ConfigError, ProviderError, ToolError
from runtime.values.http_environment import Proxy, proxy_for, tls_context, tls_for
from tests.support.fakes_llm import fake_server

ABROAD = "https://api.test/v1"
NAMES = (
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSLKEYLOGFILE",
)
CERTIFICATES = ssl.get_default_verify_paths().openssl_cafile


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment that says nothing of HTTP, whatever this machine's says."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    tls_context.cache_clear()
    yield
    tls_context.cache_clear()


def settings(base_url: str = ABROAD) -> ProviderSettings:
    """A section of the settings."""
    return ProviderSettings(name="mine", kind="openai", base_url=base_url)


UNUSABLE = [
    ("ALL_PROXY", "socks5://127.0.0.1:1080", "socksio"),
    ("all_proxy", "socks5h://127.0.0.1:1080", "socksio"),
    ("HTTPS_PROXY", "socks5://127.0.0.1:1080", "socksio"),
    ("ALL_PROXY", "socks4://127.0.0.1:1080", "socks4://"),
    ("HTTPS_PROXY", "ftp://proxy.test:21", "ftp://"),
    ("HTTPS_PROXY", "::::", "http://HOST:PORT"),
    ("https_proxy", "http://[bad", "http://HOST:PORT"),
    ("HTTPS_PROXY", "http://", "http://HOST:PORT"),
    ("HTTPS_PROXY", "proxy.test:99999", "http://HOST:PORT"),
    ("HTTPS_PROXY", "proxy.test:0", "http://HOST:PORT"),
    ("HTTPS_PROXY", "proxy.test:port", "http://HOST:PORT"),
]


@pytest.mark.skipif(importlib.util.find_spec("socksio") is not None, reason="SOCKS proxies can be used here")
@pytest.mark.parametrize(("name", "value", "said"), UNUSABLE)
def test_a_proxy_that_cannot_be_used_is_named_with_what_to_do(name, value, said, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as raised:
        catalog.create(settings())
    assert f"The environment variable {name} " in str(raised.value)
    assert said in str(raised.value)
    assert "unset it" in str(raised.value)


@pytest.mark.parametrize("value", ["api.test", ".test", "*", "other.test,api.test", "api.test:443"])
def test_whoever_needs_no_proxy_does_not_hear_of_one(value, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setenv("NO_PROXY", value)
    assert proxy_for("https://api.test:443/v1") is None
    catalog.create(settings("https://api.test:443/v1"))


def test_a_proxy_for_another_scheme_is_not_looked_at(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "::::")
    catalog.create(settings())
    with pytest.raises(ConfigError, match="HTTP_PROXY"):
        catalog.create(settings("http://api.test/v1"))


def test_the_proxy_of_the_scheme_stands_before_the_one_for_all(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setenv("HTTPS_PROXY", "proxy.test:3128")
    named = Proxy("the environment variable HTTPS_PROXY", "http://proxy.test:3128")
    assert proxy_for(ABROAD) == named


async def test_a_proxy_that_does_not_answer_is_named(monkeypatch):
    async with fake_server() as server:
        closed = server.base_url.removesuffix("/v1")
    monkeypatch.setenv("ALL_PROXY", closed)
    model = catalog.create(settings("http://model.test/v1"))
    with pytest.raises(
        ProviderError, match="through the proxy that the environment variable ALL_PROXY names"
    ):
        await try_once(model, "m")
    await model.aclose()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("SSL_CERT_FILE", "a file of certificates"),
        ("SSL_CERT_DIR", "a folder of certificates"),
        ("SSLKEYLOGFILE", "a file that can be written"),
    ],
)
def test_a_file_for_tls_that_is_not_there_is_named(name, said, monkeypatch, tmp_path):
    monkeypatch.setenv(name, str(tmp_path / "missing" / "file"))
    with pytest.raises(ConfigError) as raised:
        catalog.create(settings())
    assert f"The environment variable {name} names " in str(raised.value)
    assert said in str(raised.value)
    assert "No such file or directory" in str(raised.value)


def test_a_file_that_holds_no_certificates_is_named(monkeypatch, tmp_path):
    (tmp_path / "certs.pem").write_text("nothing of the kind\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certs.pem"))
    with pytest.raises(ConfigError, match=r"SSL_CERT_FILE .* no certificate that can be read"):
        catalog.create(settings())


def test_what_is_wrong_with_tls_concerns_nobody_who_uses_none(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/missing")
    catalog.create(settings("http://127.0.0.1:11434/v1"))


@pytest.mark.skipif(not Path(CERTIFICATES).is_file(), reason="no file of certificates is known here")
def test_good_certificates_are_taken(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", CERTIFICATES)
    monkeypatch.setenv("SSL_CERT_DIR", "/missing")  # not looked at beside a file
    assert tls_for(ABROAD).get_ca_certs()


async def test_a_page_that_is_fetched_says_the_same(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/missing")
    with pytest.raises(ToolError, match="The environment variable SSL_CERT_FILE names '/missing'"):
        await fetch("https://page.test/", CheckedBackend(private=True))
