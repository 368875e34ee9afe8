"""What steps of a transcript are made of: calls, what was counted, what was sent. Knows no step."""

from schemas.session_state import Step


class CallRecord(Step):
    """A tool call: `call_id` is ours, unique in the session; `id` is the provider's, which may repeat."""

    call_id: str
    id: str
    name: str
    arguments: str


class UsageRecord(Step):
    """Tokens as the provider counted them. Of the input, cached_tokens came out of its cache and
    cache_write_tokens went into it.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class RouteRecord(Step):
    """The route of a provider call, with what was learned of it. Tokens; None: not known, not set."""

    provider: str
    model: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    output_counted_apart: bool = False
    learned_window: int | None = None


class RequestRecord(Step):
    """A provider call as it was made, so that a replay can make it again and compare.

    setup: the digest of the SetupStep it was composed under. digest: sha256 of the whole request, hex.
    rows: how many were sent. tools: whether they were offered. goal: the turn in which the current goal was
    set. pins: the turns that were pinned.
    """

    setup: str
    digest: str
    rows: int
    calibration: float = 1.0
    tools: bool = True
    goal: str = ""
    pins: tuple[str, ...] = ()


class SizesRecord(Step):
    """The sizes that an overflow error stated, tokens, None where it stated none."""

    limit: int | None = None
    requested: int | None = None
    input: int | None = None
    output: int | None = None
    limits_output: bool = False
