"""Opaque ids for turns, messages and sessions."""

import os


def new_id() -> str:
    """16 hex digits, from the system's random source."""
    return os.urandom(8).hex()
