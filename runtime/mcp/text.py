"""Foreign text on one line: names, errors and last words of servers. Pure."""

from collections.abc import Iterable

HIDDEN = "(hidden)"
SHORTEST_SECRET = 6
"""Shorter values (`1`, `true`) are no secrets, and would blank out half of any sentence."""


def one_line(text: str, limit: int = 200) -> str:
    """`text` with every run of blanks and control characters as one space, cut at `limit`."""
    plain = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * limit]).split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def without(text: str, secrets: Iterable[str]) -> str:
    """`text` with the values left out, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return text
