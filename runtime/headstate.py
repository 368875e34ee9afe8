"""What of a session's memory is kept beside its transcript, and how it is taken up again. Pure.

The cut itself is written with each trim; what a turn has taught (a window, the limits it ran under) is
written with its end.
"""

from dataclasses import replace

from runtime.history.budget import count_limit, effective_context_budget, trim_target
from runtime.profiles import Profile, Route
from schemas.session_state import Learned, Limits, SessionState


def limits_of(profile: Profile, route: Route) -> Limits:
    """The two limits that decide what is kept: by count, in the profile's unit, and by tokens."""
    tokens = trim_target(effective_context_budget(profile, route), route)
    return Limits(count=count_limit(profile).limit, tokens=tokens)


def learned_of(route: Route, configured: Route) -> Learned | None:
    """What the provider's errors told of a route beyond its settings; None when they told nothing."""
    output = route.max_output_tokens if route.max_output_tokens != configured.max_output_tokens else None
    if route.learned_window is None and output is None:
        return None
    return Learned(provider=route.provider, model=route.model, window=route.learned_window, output=output)


def with_learned(route: Route, learned: Learned | None) -> Route:
    """The route as it was known before a restart, when it is the same one."""
    if learned is None or (learned.provider, learned.model) != (route.provider, route.model):
        return route
    return replace(
        route,
        learned_window=learned.window or route.learned_window,
        max_output_tokens=learned.output or route.max_output_tokens,
    )


def state_after(state: SessionState, profile: Profile, route: Route, configured: Route) -> SessionState:
    """The state with what is known at a turn's end. configured: the route as the settings have it."""
    learned = learned_of(route, configured) or state.learned
    return state.model_copy(update={"learned": learned, "limits": limits_of(profile, route)})
