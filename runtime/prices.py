"""What a model costs. Pure; knows neither who asks nor how much was used."""

from typing import NamedTuple

MILLION = 1_000_000


class Cost(NamedTuple):
    """An amount of money. currency: ISO 4217, or another unit."""

    amount: float
    currency: str


class Price(NamedTuple):
    """Money for a million tokens. cached_read, cached_write: of the input that came out of the provider's
    cache or went into it; None costs what other input costs. currency: ISO 4217, or another unit.
    """

    input: float = 0.0
    output: float = 0.0
    cached_read: float | None = None
    cached_write: float | None = None
    currency: str = "USD"

    def of(
        self, *, input_tokens: int, output_tokens: int, cached_read: int = 0, cached_write: int = 0
    ) -> float:
        """The cost of one call. input_tokens: all of the input, what was cached included."""
        read = self.input if self.cached_read is None else self.cached_read
        write = self.input if self.cached_write is None else self.cached_write
        fresh = max(input_tokens - cached_read - cached_write, 0)
        spent = fresh * self.input + cached_read * read + cached_write * write + output_tokens * self.output
        return spent / MILLION
