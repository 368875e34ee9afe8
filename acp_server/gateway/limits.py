"""How many requests an address may make: a bucket each, refilled by time. Knows no request and no clock."""

from dataclasses import dataclass

BURST_SECONDS = 10
"""So many seconds' requests may come at once: a page loads all its parts together."""
MOST_ADDRESSES = 4096


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Limits:
    """One bucket for each address; of very many, those that were not used for longest are forgotten."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = rate * BURST_SECONDS
        self._buckets: dict[str, _Bucket] = {}

    def take(self, address: str, now: float) -> float:
        """Count a request. 0 when it may go on, else the seconds until the next one may. now: seconds."""
        bucket = self._buckets.pop(address, None) or _Bucket(self._most, now)
        self._buckets[address] = bucket
        bucket.left = min(self._most, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if len(self._buckets) > MOST_ADDRESSES:
            del self._buckets[next(iter(self._buckets))]
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0
