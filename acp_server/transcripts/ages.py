"""`30d` to a moment in time. Knows no session."""

import re
from datetime import UTC, datetime, timedelta

from runtime.errors import WholeturnError

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"(\d{1,6})([hdw])")


def moment_before(age: str, now: datetime | None = None) -> str:
    """The moment that long ago, ISO 8601 UTC with milliseconds. Raises WholeturnError for what is no age."""
    found = _AGE.fullmatch(age.strip())
    if found is None:
        raise WholeturnError(f"{age[:40]!r} is no age: write 12h, 30d or 8w.")
    try:
        then = (now or datetime.now(UTC)) - timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        return "0001-01-01T00:00:00.000Z"
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
