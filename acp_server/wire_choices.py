"""What can be set, as ACP's session config options. Pure; knows no settings."""

from collections.abc import Iterable, Mapping

from runtime.choices import Offer, Value


def config_options(found: Iterable[Offer]) -> list[dict[str, object]]:
    """Offers as ACP's session config options."""
    return [
        {
            "type": "select",
            "id": offer.id,
            "name": offer.name,
            "description": offer.description,
            "category": offer.category,
            "currentValue": offer.current,
            "options": [_option(value) for value in offer.values],
        }
        for offer in found
    ]


def _option(value: Value) -> Mapping[str, object]:
    option = {"value": value.id, "name": value.name}
    return {**option, "description": value.description} if value.description else option
