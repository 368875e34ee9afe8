"""Which network addresses are open to everyone, and which belong to this machine or its network. Pure."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_NAT64 = ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether it is an address of the public internet. What is no address is not."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _inner(found)
    if inner is not None:
        return is_public(str(inner))
    if isinstance(found, IPv6Address) and found.is_site_local:
        return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The address of the older kind that one of the newer kind leads to."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour
