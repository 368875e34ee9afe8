"""What a provider's own count says about our estimate. Keeps nothing."""

from runtime.events import Noticed
from runtime.history.compose import Composed
from runtime.history.images import IMAGE_TOKENS

_SMALL = 2000
_FAR_BELOW = 0.4
_BELOW_USUAL = 0.6


def calibration_ratio(reported_input_tokens: int, raw_tokens: int) -> float:
    """reported / estimated for one request, schemas included; 1.0 when either is missing."""
    if reported_input_tokens <= 0 or raw_tokens <= 0:
        return 1.0
    return reported_input_tokens / raw_tokens


def silent_cut(
    composed: Composed, reported_input_tokens: int, usual_ratio: float | None = None
) -> Noticed | None:
    """A warning when the provider counted far fewer tokens than were sent: it cut the prompt itself.

    usual_ratio: calibration_ratio of earlier calls on the route, if any. Pictures are left out of the
    comparison, since their real price varies too much.
    """
    sent = composed.raw_tokens - composed.images * IMAGE_TOKENS
    share = _FAR_BELOW if usual_ratio is None else min(usual_ratio, 1.0) * _BELOW_USUAL
    if reported_input_tokens <= 0 or sent < _SMALL or reported_input_tokens >= sent * share:
        return None
    return Noticed(
        "warning",
        "The provider seems to have cut the prompt",
        f"About {sent} tokens were sent and it counted {reported_input_tokens}. It may run with a smaller "
        "context than the model has: raise it there, or set context_window to what it really uses.",
    )
