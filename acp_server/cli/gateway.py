"""`wholeturn gateway`: the server for many clients, over HTTP and WebSocket, with a dashboard."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from acp_server.assembly.extras import installing, is_installed
from acp_server.cli.output import described, printing
from acp_server.config.load import for_session, load_user_config
from acp_server.config.paths import absolute, data_dir, here
from acp_server.config.settings import GatewaySettings, add_options, options_of
from runtime.values.errors import ConfigError, WholeturnError

TEXT = "serve many clients over HTTP and WebSocket, with a dashboard"


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("gateway", help=TEXT, description=described(TEXT))
    parser.add_argument("--host", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, help="the port; 0: any that is free (default: 8017)")
    parser.add_argument("--tls-cert", metavar="FILE", help="a certificate, with those that vouch for it")
    parser.add_argument("--tls-key", metavar="FILE", help="its key, if that is in another file")
    parser.add_argument(
        "--insecure-address",
        action="store_true",
        help="listen on an address of the network without TLS; the token then crosses it in the clear",
    )
    add_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if not is_installed("gateway", find_spec):
        raise WholeturnError(f"The gateway is not installed: {installing('gateway')}")
    options = options_of(given)
    settings = chosen(for_session(load_user_config(options, os.environ), Path(here())).gateway, given)
    check_address(settings, insecure=given.insecure_address)
    from acp_server.gateway import token as tokens

    path = data_dir(os.environ) / tokens.FILE
    token, made = tokens.read_or_make(path)
    # Loaded here: they are the whole server.
    import trio

    from acp_server.gateway.serve import serve_gateway
    from acp_server.start.serve import log_to_stderr

    log_to_stderr()
    ready = partial(announce, settings, path, token, made)
    trio.run(serve_gateway, options, os.environ, settings, token, ready)
    return 0


def chosen(settings: GatewaySettings, given: argparse.Namespace) -> GatewaySettings:
    """The settings with what the command line says. A key without its certificate is an error."""
    settings = settings._replace(
        host=settings.host if given.host is None else given.host,
        port=settings.port if given.port is None else given.port,
        tls_cert=absolute(given.tls_cert, here()) if given.tls_cert else settings.tls_cert,
        tls_key=absolute(given.tls_key, here()) if given.tls_key else settings.tls_key,
    )
    if settings.tls_key and not settings.tls_cert:
        raise ConfigError("gateway: there is a key for TLS and no certificate")
    return settings


def check_address(settings: GatewaySettings, *, insecure: bool) -> None:
    """Refuse what would send the token and all that is said through a network in the clear."""
    if settings.tls_cert or insecure:
        return
    from acp_server.gateway.guard import is_loopback

    if not is_loopback(settings.host):
        raise ConfigError(
            f"gateway: {settings.host} can be reached from outside of this machine: give it a certificate "
            "(--tls-cert, --tls-key), put a reverse proxy with TLS in front of 127.0.0.1, or, in a network "
            "that you trust, say --insecure-address"
        )


def announce(
    settings: GatewaySettings, path: Path, token: str, made: bool, places: Sequence[tuple[str, int]]
) -> None:
    """Say where it is. The token is shown when it is made, and at a terminal, as a part of the address that
    browsers keep to themselves.
    """
    scheme = "https" if settings.tls_cert else "http"
    secret = f"#token={token}" if sys.stdout.isatty() else ""
    with printing():
        for host, port in places:
            shown = f"[{host}]" if ":" in host else host
            print(f"wholeturn gateway: {scheme}://{shown}:{port}/{secret}")
        print(f"token: {token} (shown once; kept in {path})" if made else f"token: kept in {path}")
        sys.stdout.flush()


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)
