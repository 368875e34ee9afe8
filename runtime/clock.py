"""The time as it is stored and shown. Apart from `setup`, because a new session loads nothing else of it."""

from datetime import UTC, datetime


def utc_now() -> str:
    """ISO 8601, UTC, milliseconds."""
    return utc_text(datetime.now(UTC))


def utc_text(moment: datetime) -> str:
    """A moment in UTC, written the same way."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
