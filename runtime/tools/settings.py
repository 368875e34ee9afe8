"""What of the configuration tools need. A frozen value; knows no key of any file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """withheld: variables that no command gets, since our own keys stand in them.

    private_addresses: fetch_url may reach this machine and the local network.
    """

    withheld: frozenset[str] = frozenset()
    private_addresses: bool = False
