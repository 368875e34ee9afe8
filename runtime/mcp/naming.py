"""Names under which a model calls the tools of MCP servers. Pure.

A name depends on the server's and the tool's own names alone, so it stays what it is whichever servers come
and go: calls in an old history still mean the same tool.
"""

import hashlib
import re

LONGEST = 64
"""Characters that every provider takes."""
PREFIX = "mcp__"

_DIGEST = 8
_SIGNS = re.compile(r"[^A-Za-z0-9_-]")
# Nothing that could be taken for the two underscores between server and tool.
_PLAIN_SERVER = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_PLAIN_TOOL = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]*")


def tool_name(server: str, tool: str) -> str:
    """`mcp__server__tool`. A name that had to be changed or cut ends in a digest of the real ones."""
    plain = f"{PREFIX}{server}__{tool}"
    if len(plain) <= LONGEST and _PLAIN_SERVER.fullmatch(server) and _PLAIN_TOOL.fullmatch(tool):
        return plain
    real = f"{server}\0{tool}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(real).hexdigest()[:_DIGEST]
    room = LONGEST - len(PREFIX) - _DIGEST - 3
    shown = _SIGNS.sub("_", tool)[: room - room // 3]
    owner = _SIGNS.sub("_", server)[: room - len(shown)]
    return f"{PREFIX}{owner}__{shown}_{digest}"
