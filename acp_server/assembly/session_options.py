"""What a session's user may set, out of the settings: models, levels of thought, profiles. Pure.

Light, since the answer to `session/new` states it. The settings are those that the session was opened with.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from acp_server.config.layers import printable
from acp_server.config.settings import ModelConfig, SessionConfig
from runtime.providers.settings import levels, with_level
from runtime.values.errors import InvalidParams
from runtime.values.profiles import MODE, MODEL, PROFILE, THOUGHT_LEVEL, Choice, Offer, Value

if TYPE_CHECKING:
    from runtime.values.profiles import Profile

MOST_NAMES = 40
CONFIGURED = "default"
"""The level of thought that the settings say, or that is the model's own."""


def offers(config: SessionConfig, choice: Choice) -> tuple[Offer, ...]:
    """All that can be set, with what this choice sets; what the model has no values for is not there."""
    found = (_models(config, choice), _levels(config, choice), _profiles(config, choice))
    return tuple(offer for offer in found if offer.values)


def chosen(config: SessionConfig, choice: Choice, offer_id: str, value: str) -> Choice:
    """The choice with one thing set. Raises InvalidParams, naming what is possible."""
    there = {offer.id: offer for offer in offers(config, choice)}
    if offer_id not in there:
        raise InvalidParams(f"Invalid params: there is no such option; there are {_listed((MODE, *there))}")
    values = [known.id for known in there[offer_id].values]
    if value not in values:
        raise InvalidParams(f"Invalid params: {offer_id} has no such value; it may be {_listed(values)}")
    return choice._replace(**{offer_id: "" if value == values[0] else value})


def _listed(names: Iterable[str]) -> str:
    named = [printable(name) for name in names]
    return ", ".join(named[:MOST_NAMES]) + (", …" if len(named) > MOST_NAMES else "")


def still_there(config: SessionConfig, choice: Choice) -> tuple[Choice, list[str]]:
    """As much of a stored choice as can still be made, and a sentence for each thing that cannot."""
    kept, lost = Choice(), []
    for offer_id, value in choice._asdict().items():
        try:
            kept = chosen(config, kept, offer_id, value) if value else kept
        except InvalidParams:
            lost.append(f"The {offer_id.replace('_', ' ')} {value!r} of this session is not there any more.")
    return kept, lost


def with_choice(config: SessionConfig, choice: Choice) -> SessionConfig:
    """The settings as they are when this is chosen. What is not on offer changes nothing."""
    agent = config.agent
    if choice.model:
        agent = next((agent.using(model) for model in config.models if model.route.id == choice.model), agent)
    if choice.profile:
        named = (profile for profile in config.profiles if profile.name == choice.profile)
        agent = agent._replace(profile=next(named, agent.profile))
    if choice.thought_level and agent.provider is not None:
        agent = agent._replace(provider=with_level(agent.provider, choice.thought_level))
    return config._replace(agent=agent)


def _offer(
    offer_id: str, name: str, category: str, description: str, current: str, values: Sequence[Value]
) -> Offer:
    known = [value.id for value in values]
    return Offer(
        offer_id,
        name,
        category,
        description,
        current if current in known else next(iter(known), ""),
        tuple(values),
    )


def _models(config: SessionConfig, choice: Choice) -> Offer:
    values = [
        Value(model.route.id, model.route.model or model.route.provider, _of(model))
        for model in config.models
    ]
    return _offer(MODEL, "Model", "model", "The model that answers", choice.model, values)


def _of(model: ModelConfig) -> str:
    window = model.route.context_window
    size = f", window of {window} tokens" if window else ""
    return f"by {model.route.provider}{size}{'' if model.images else ', sees no pictures'}"


def _levels(config: SessionConfig, choice: Choice) -> Offer:
    provider = with_choice(config, choice._replace(thought_level="")).agent.provider
    found = () if provider is None else levels(provider)
    values = [Value(CONFIGURED, "As configured"), *(Value(level, level.capitalize()) for level in found)]
    text = "How long the model thinks before it answers"
    name = "Thinking"
    return _offer(THOUGHT_LEVEL, name, "thought_level", text, choice.thought_level, values if found else ())


def _profiles(config: SessionConfig, choice: Choice) -> Offer:
    values = [Value(profile.name, profile.name, _limits(profile)) for profile in config.profiles]
    text = "How much of the conversation the model is sent"
    return _offer(PROFILE, "Retention profile", "model_config", text, choice.profile, values)


def _limits(profile: "Profile") -> str:
    turns, tokens = profile.max_history_messages, profile.max_context_tokens
    named = [
        f"{turns} {profile.history_unit}" if turns is not None else "",
        f"{tokens} tokens" if tokens else "",
    ]
    return ", ".join(filter(None, named))
