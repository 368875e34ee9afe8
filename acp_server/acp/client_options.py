"""What may go to this client, as one frozen value, and what a session can be set to as ACP config options.

Built of the client's capabilities and our settings, once per connection, after `initialize`. Knows no
session and sends nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from runtime.values.profiles import Offer, Value

if TYPE_CHECKING:
    from schemas.acp.initialize import ClientCapabilities

NAMESPACE = "wholeturn"
"""Our key in the `_meta` of both sides' capability objects."""

TrimSetting = Literal["always", "negotiated", "off"]
VisibleSetting = Literal["auto", "always", "never"]
TrimForm = Literal["update", "extension"]


class AcpSettings(NamedTuple):
    """How a client is told of trims: the `history_trimmed` update, and a line the person can see.

    v2: the draft of ACP v2 is spoken with a client that asks for it.
    """

    history_trimmed: TrimSetting = "always"
    visible_trim_notice: VisibleSetting = "auto"
    v2: bool = False


@dataclass(frozen=True, slots=True)
class WireOptions:
    """What may go to this client. The defaults are a client that declared nothing.

    trim_form: the shape of the product's own trim message: a `session/update`, a notification whose
    method begins with an underscore, or None. visible_trim: a trim also shows as a line of thought.
    """

    trim_form: TrimForm | None = "update"
    visible_trim: bool = True
    notices: bool = False
    compaction: bool = False
    read_text_file: bool = False
    write_text_file: bool = False
    terminal: bool = False
    questions: bool = False


def wire_options(
    capabilities: "ClientCapabilities",
    *,
    history_trimmed: TrimSetting = "always",
    visible_trim_notice: VisibleSetting = "auto",
) -> WireOptions:
    """Combine what the client offers with the settings of `[acp]`."""
    wish = _trim_wish(capabilities.meta)
    form = _trim_form(history_trimmed, wish)
    session = capabilities.session
    notices = session is not None and session.notices
    compaction = session is not None and session.compaction
    # A client that knows our update shows trims by itself, but only if it will get that update.
    shown_otherwise = notices or compaction or (wish is True and form == "update")
    return WireOptions(
        trim_form=form,
        visible_trim={"auto": not shown_otherwise, "always": True, "never": False}[visible_trim_notice],
        notices=notices,
        compaction=compaction,
        read_text_file=capabilities.fs.read_text_file,
        write_text_file=capabilities.fs.write_text_file,
        terminal=capabilities.terminal,
        questions=capabilities.elicitation is not None and capabilities.elicitation.form,
    )


def _trim_wish(meta: Mapping[str, object] | None) -> object:
    """The client's `_meta.wholeturn.historyTrimmed`: True, False, "ext", or whatever it is."""
    ours = (meta or {}).get(NAMESPACE)
    return ours.get("historyTrimmed") if isinstance(ours, dict) else None


def _trim_form(setting: TrimSetting, wish: object) -> TrimForm | None:
    if setting == "off" or wish is False:
        return None
    if wish == "ext":
        return "extension"
    return "update" if setting == "always" or wish is True else None


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
