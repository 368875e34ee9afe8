"""The address of a store on a database server, and the same without its password. Knows no driver. Pure."""

import re

SCHEMES = ("postgresql://", "postgres://")
VARIABLES = ("WHOLETURN_STORE", "PGPASSWORD", "PGPASSFILE")
"""Variables that a password for the server may stand in: no business of any program that we start."""

_HIDDEN = "***"
# Compiled at their first use: every start of the server imports this module.
# To the last @: a password that should have been written with %40 is hidden as well.
_PASSWORD = r"(?s)(?<=://)([^:@/?]*):(.*)@"
_BREAKS = r"[@/:?#]|%[0-9A-Fa-f]{2}"
_TELLING = r"(?i)([?&][^=&]*(?:passw|secret|key)[^=&]*)=([^&]*)"


def is_address(store: str) -> bool:
    """Whether the setting `store` names a server that we can talk to."""
    return store.startswith(SCHEMES)


def masked(address: str) -> str:
    """The address fit to be shown."""
    return re.sub(_TELLING, rf"\1={_HIDDEN}", re.sub(_PASSWORD, rf"\1:{_HIDDEN}@", address))


def scrubbed(text: str, address: str) -> str:
    """A driver's text without what `masked` hides of the address."""
    secrets = [found[1] for found in (*re.findall(_PASSWORD, address), *re.findall(_TELLING, address))]
    # A driver that misreads an address may show any part of it: a password with an @ in it as the host.
    parts = {part for secret in secrets for part in (secret, *re.split(_BREAKS, secret)) if len(part) > 2}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, _HIDDEN)
    return text
