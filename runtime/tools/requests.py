"""What a call on a path wants to do, told before it runs. Looks at names and ignore files alone."""

from pathlib import Path

from runtime.ports import ToolAction, ToolContext, ToolRequest
from runtime.tools.nearby import look
from runtime.tools.paths import quote
from runtime.tools.roots import Place, inside, resolve
from runtime.tools.sensitive import hides_something, is_secret, risk_of_writing

_UNSEEN = "its name holds characters that cannot be seen"


async def path_request(action: ToolAction, raw: str, context: ToolContext) -> ToolRequest:
    """A call that reads, lists or changes one path. Raises ToolError for what can name no file."""
    return await look(raw, context, lambda plain: _request(action, raw, context, plain))


def _request(action: ToolAction, raw: str, context: ToolContext, plain: Path | None) -> ToolRequest:
    resolved = resolve(raw, context, plain)
    place = inside(resolved, context)
    found = Place(resolved.parent, (resolved.name,), quote(str(resolved))) if place is None else place
    risk = risk_of_writing(resolved.parts if place is None else place.parts) if action == "write" else ""
    if hides_something(raw) or hides_something(str(resolved)):
        risk = _UNSEEN
    return ToolRequest(
        action,
        found.shown,
        (resolved,),
        outside=place is None,
        secret=bool(found.parts) and is_secret(found, local=plain is not None),
        risk=risk,
    )
