"""What a provider's own codes and words say of a failure where its status does not: one table.

Pure. Grows as providers change their wording; all matching is on lower-case text.
"""

from dataclasses import dataclass

from runtime.providers.errors.body import Told
from runtime.values.errors import ProviderErrorKind

_Kind = ProviderErrorKind


@dataclass(frozen=True, slots=True)
class Rule:
    """One meaning and how it is told. codes: whole; phrases: anywhere in the words.

    sentence: in place of the kind's own. final: an error that states a wait is none of these.
    """

    kind: ProviderErrorKind
    codes: frozenset[str] = frozenset()
    phrases: tuple[str, ...] = ()
    sentence: str = ""
    final: bool = False


RULES = (
    Rule(
        _Kind.REFUSED,
        frozenset(
            {
                "content_filter",
                "content_filtered",
                "content_policy_violation",
                "data_inspection_failed",
                "datainspectionfailed",
                "moderation_blocked",
                "prohibited_content",
                "1301",
            }
        ),
        (
            "content management policy",
            "content filtering policy",
            "content policy",
            "our safety system",
            "input was flagged",
            "prompt was flagged",
            "violates usage guidelines",
            "violating our usage policy",
            "prohibited content",
            "inappropriate content",
            "considered high risk",
        ),
    ),
    Rule(
        _Kind.QUOTA,
        frozenset(
            {
                "insufficient_quota",
                "insufficient_balance",
                "billing_error",
                "billing_hard_limit_reached",
                "billing_not_active",
                "budget_exceeded",
                "exceeded_current_quota_error",
                "arrearage",
                "1113",
            }
        ),
        (
            "credit balance is too low",
            "insufficient balance",
            "insufficient credits",
            "requires more credits",
            "any credits",
            "included credits",
            "out of credits",
            "exceeded your current quota",
            "budget has been exceeded",
            "specified api usage limits",
            "spending limit",
            "check your plan and billing",
        ),
        final=True,
    ),
    Rule(
        _Kind.AUTH,
        frozenset({"invalid_api_key", "api_key_invalid", "authentication_error", "unauthenticated"}),
        (
            "api key not valid",
            "api key expired",
            "incorrect api key",
            "invalid api key",
            "invalid x-api-key",
            "no auth credentials",
        ),
    ),
    Rule(
        _Kind.BAD_REQUEST,
        phrases=(
            "does not support tools",
            "does not support tool",
            "support tool use",
            "requires --enable-auto-tool-choice",
            "tools param requires --jinja",
            "tool calling is not supported",
            "does not support function calling",
        ),
        sentence='does not offer tool calls for the model "{model}"; set tools = "prompt" for it',
    ),
    Rule(
        _Kind.NOT_FOUND,
        frozenset(
            {
                "model_not_found",
                "model_not_available",
                "model_not_supported",
                "deploymentnotfound",
                "unknown_model",
                "1211",
            }
        ),
        (
            "is not a valid model",
            "invalid model name",
            "model not exist",
            "no models loaded",
            "failed to load model",
            "does not have access to model",
        ),
    ),
    Rule(
        _Kind.OVERLOADED,
        phrases=("loading model",),
        sentence='is still loading the model "{model}"; ask again in a moment',
    ),
    Rule(_Kind.OVERLOADED, frozenset({"overloaded_error", "engine_overloaded_error", "server_overloaded"})),
    Rule(
        _Kind.RATE_LIMIT,
        frozenset(
            {
                "rate_limit_error",
                "rate_limit_exceeded",
                "rate_limited",
                "ratelimitexceeded",
                "ratelimitreached",
                "throttlingexception",
            }
        ),
    ),
    Rule(
        _Kind.MALFORMED,
        frozenset({"tool_use_failed"}),
        sentence="could not read the tool call that the model wrote",
    ),
)
"""The first one that fits holds."""


def rule_for(told: Told, wait: float | None) -> Rule | None:
    """The rule that an error falls under, if any. wait: seconds that it asks for, in its head or its words.

    A page of HTML falls under none: it is not the provider that speaks.
    """
    if told.page:
        return None
    codes, text = {code.lower() for code in told.codes}, told.text.lower()
    return next((rule for rule in RULES if _fits(rule, codes, text, wait)), None)


def _fits(rule: Rule, codes: set[str], text: str, wait: float | None) -> bool:
    if not rule.codes.isdisjoint(codes):
        return True
    return any(phrase in text for phrase in rule.phrases) and not (rule.final and wait is not None)
