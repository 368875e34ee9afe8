"""Names and addresses as requests and settings write them. Pure, but for looking a name up."""

import ipaddress
import re
import socket
from typing import NamedTuple

from runtime.errors import ConfigError

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_PLACE = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")


class Place(NamedTuple):
    """A host, in lower case and without brackets, and a port; None where none is written."""

    host: str
    port: int | None = None


def place_of(text: str) -> Place | None:
    """`host`, `host:port`, `[address]` or `[address]:port`; None for anything else."""
    found = _PLACE.fullmatch(text.lower())
    if found is None:
        return None
    host, port = found["address"] or found["name"].rstrip("."), found["port"]
    return Place(host, int(port) if port else None)


def is_loopback(host: str) -> bool:
    """Whether nobody outside of this machine can reach it. A name counts by all that it stands for.

    Raises ConfigError for a name that stands for nothing.
    """
    return all(ipaddress.ip_address(address).is_loopback for address in addresses_of(host))


def addresses_of(host: str) -> list[str]:
    """The addresses behind a name, IPv4 first; an address is its own. Raises ConfigError."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"gateway: {host[:200]!r} is no address of this machine") from error
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
