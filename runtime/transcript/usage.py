"""What a session used: tokens as the providers counted them, and what they cost. Sums over recorded replies.

Knows no provider. A reply without figures of its provider counts as a call and adds nothing.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from runtime.values.model import Cost, Price, UsagePart
from runtime.values.stored import Store, StoredEntry
from schemas.transcript import ANY_STEP, ContextStep, ReplyStep, SetupStep, TrimStep, UsageRecord

PAGE = 500
KINDS = frozenset({"reply", "setup", "context", "trim"})
"""Kinds of entries that say something about usage."""

NOTHING = UsageRecord(input_tokens=0, output_tokens=0)


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums, tokens. input: all of it, what was cached included. calls: replies of a model.

    costs: by currency. unpriced: calls that have no price, so that the costs are not the whole.
    """

    calls: int = 0
    input: int = 0
    output: int = 0
    cached_read: int = 0
    cached_write: int = 0
    costs: Mapping[str, float] = field(default_factory=dict)
    unpriced: int = 0

    def plus(self, used: UsageRecord | None, price: Price | None) -> "Usage":
        """With one more reply."""
        told = used or NOTHING
        return Usage(
            self.calls + 1,
            self.input + told.input_tokens,
            self.output + told.output_tokens,
            self.cached_read + told.cached_tokens,
            self.cached_write + told.cache_write_tokens,
            self.costs if price is None else _added(self.costs, price, told),
            self.unpriced + (price is None),
        )

    def cost(self) -> Cost | None:
        """The costs as one sum; None when there is none, or when they are in several currencies."""
        if len(self.costs) != 1:
            return None
        ((currency, amount),) = self.costs.items()
        return Cost(amount, currency)


def _added(costs: Mapping[str, float], price: Price, told: UsageRecord) -> Mapping[str, float]:
    spent = price.of(
        input_tokens=told.input_tokens,
        output_tokens=told.output_tokens,
        cached_read=told.cached_tokens,
        cached_write=told.cache_write_tokens,
    )
    return {**costs, price.currency: costs.get(price.currency, 0.0) + spent}


@dataclass(frozen=True, slots=True)
class Totals:
    """Usage of a whole session, of its newest turn, and of each model by its route's id."""

    session: Usage = Usage()
    newest: Usage = Usage()
    models: Mapping[str, Usage] = field(default_factory=dict)


async def stored_totals(store: Store, session_id: str, prices: Mapping[str, Price], route_id: str) -> Totals:
    """Totals over everything that is stored. route_id: what answered where the record does not say.

    Raises StoreError.
    """
    routes: dict[str, str] = {}
    models: dict[str, Usage] = {}
    session = newest = Usage()
    turn_id = ""
    async for entry in _telling(store, session_id):
        step = _step(entry)
        if isinstance(step, SetupStep):
            routes[step.digest] = _id(step)
        elif (told := _told(step, routes, route_id)) is not None:
            by, used = told
            price = prices.get(by)
            session = session.plus(used, price)
            newest = (newest if entry.turn_id == turn_id else Usage()).plus(used, price)
            models[by] = models.get(by, Usage()).plus(used, price)
            turn_id = entry.turn_id
    return Totals(session, newest, models)


def _told(step: object, routes: Mapping[str, str], route_id: str) -> tuple[str, UsageRecord | None] | None:
    """Which model was asked in a step, by its route's id, and what that used; None where none was."""
    match step:
        case ReplyStep(request=request, usage=usage):
            return (routes.get(request.setup, route_id) if request else route_id), usage
        case ContextStep(used=used) | TrimStep(used=used) if used is not None:
            return used.route, used.usage
        case _:
            return None


def usage_record(part: UsagePart) -> UsageRecord:
    """What a provider counted, as it is recorded."""
    return UsageRecord(
        input_tokens=part.input_tokens,
        output_tokens=part.output_tokens,
        cached_tokens=part.cached_tokens,
        cache_write_tokens=part.cache_write_tokens,
    )


def _id(step: SetupStep) -> str:
    route = step.route
    return f"{route.provider}/{route.model}" if route.model else route.provider


async def _telling(store: Store, session_id: str) -> AsyncIterator[StoredEntry]:
    after = 0
    while page := await store.entries(session_id, after=after, limit=PAGE):
        after = page[-1].seq
        for entry in page:
            if entry.kind in KINDS:
                yield entry


def _step(entry: StoredEntry) -> object:
    try:
        return ANY_STEP.validate_json(entry.payload)
    except ValueError:
        return None
