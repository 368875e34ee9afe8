"""What a session runs with: `/model` and `/profile`, which set it, and `/cost`, which counts it.

Each gives the text of its answer. What is set holds from the next prompt on, as for a client's own switches.
"""

from acp_server.config.merge import hint
from runtime.conversation.conversation import Conversation
from runtime.transcript.usage import Usage, stored_totals
from runtime.values.errors import InvalidParams
from runtime.values.events import OptionsChanged
from runtime.values.profiles import MODEL, PROFILE, Offer, Value

MOST_LISTED = 100


async def set_model(talk: Conversation, rest: str) -> str:
    """`/model NAME`: the model for what is asked from now on. Without a name: all there are."""
    return await _set(talk, MODEL, rest.strip())


async def set_profile(talk: Conversation, rest: str) -> str:
    """`/profile NAME`: how much of the conversation is kept. Without a name: all there are."""
    return await _set(talk, PROFILE, rest.strip())


async def _set(talk: Conversation, offer_id: str, wanted: str) -> str:
    offers = () if talk.switching is None else talk.switching.offers()
    offer = next((offer for offer in offers if offer.id == offer_id), None)
    if talk.switching is None or offer is None:
        return f"There is no {offer_id} to choose: none is configured."
    if not wanted:
        return _listing(offer)
    value = _meant(offer, wanted)
    if value is None:
        known = hint(wanted, [value.id for value in offer.values])
        return f"There is no {offer_id} {wanted[:80]!r}{known}{'' if known.endswith('?') else '.'}"
    try:
        talk.switching.choose(offer_id, value.id)
    except InvalidParams as error:
        return error.message
    await talk.emit(OptionsChanged(talk.offers()))
    await talk.switching.show(talk.keeper)
    return f"From your next prompt on: {_line(value)}"


def _meant(offer: Offer, wanted: str) -> Value | None:
    """By its id, else by its name if only one value has it."""
    found = [value for value in offer.values if value.id == wanted]
    named = [value for value in offer.values if value.name == wanted]
    return found[0] if found else named[0] if len(named) == 1 else None


def _listing(offer: Offer) -> str:
    lines = [f"`/{offer.id} NAME` sets one of these, from your next prompt on:", ""]
    for value in offer.values[:MOST_LISTED]:
        lines.append(f"- {_line(value)}{' **in use**' if value.id == offer.current else ''}")
    left = len(offer.values) - MOST_LISTED
    return "\n".join([*lines, *([f"- … and {left} more"] if left > 0 else [])])


def _line(value: Value) -> str:
    return f"`{value.id}`{f' ({value.description})' if value.description else ''}"


async def show_cost(talk: Conversation, rest: str) -> str:
    """`/cost`: tokens of the last turn, of the session and of each model, and what they cost."""
    totals = await stored_totals(talk.store, talk.session_id, talk.setup.prices, talk.setup.route.id)
    if not totals.session.calls:
        return "No model has answered in this session yet."
    lines = [f"- Last turn: {_told(totals.newest)}", f"- Session: {_told(totals.session)}"]
    if len(totals.models) > 1:
        lines += [f"- `{route}`: {_told(usage)}" for route, usage in totals.models.items()]
    return "\n".join(["Tokens as the providers counted them:", "", *lines, *_doubts(totals.session)])


def _told(usage: Usage) -> str:
    cached = f" ({usage.cached_read} read from the cache, {usage.cached_write} written to it)"
    cached = cached if usage.cached_read or usage.cached_write else ""
    told = f"{_calls(usage.calls)}, input {usage.input}{cached}"
    costs = "".join(f"; {amount:.4f} {currency}" for currency, amount in usage.costs.items())
    return f"{told}, output {usage.output}{costs}"


def _calls(count: int) -> str:
    return f"{count} call{'' if count == 1 else 's'}"


def _doubts(usage: Usage) -> list[str]:
    if not usage.unpriced:
        return []
    key = '`price` of `[providers.NAME.models."MODEL"]`'
    if usage.unpriced == usage.calls:
        return ["", f"What that costs is not known: {key} is not set."]
    return ["", f"{_calls(usage.unpriced)} of it cannot be priced: {key} is not set for every model."]
