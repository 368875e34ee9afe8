"""Opaque ids for turns, messages and sessions; the time as it is stored and shown."""

import os
from datetime import UTC, datetime


def new_id() -> str:
    """16 hex digits, from the system's random source."""
    return os.urandom(8).hex()


def utc_now() -> str:
    """ISO 8601, UTC, milliseconds."""
    return utc_text(datetime.now(UTC))


def utc_text(moment: datetime) -> str:
    """A moment in UTC, written the same way."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
