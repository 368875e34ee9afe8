"""What is done before each turn: guidance files looked at anew, files that the prompt links to read.

Linked files are read for the model as its own tool would read them. What the tool may not read without a
question (outside the folders, a secret, a rule against it) is not read: the link stays, with the reason.
Knows no wire.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from acp_server.acp.prompt_text import fenced, path_from_uri
from acp_server.commands.commands import is_command
from acp_server.workspace.guidance_files import GuidanceFiles
from runtime.conversation.conversation import Conversation
from runtime.history.request.budget import effective_context_budget
from runtime.history.rows.collapse import truncate_tool_result
from runtime.tools import catalog
from runtime.tools.sandbox.paths import quote
from runtime.values.errors import ToolError
from runtime.values.prompt import Prompt

MOST_FILES = 20
LEAST = 400
"""Bytes that are worth attaching."""
TOOL = "read_file"
NOT_FREE = "it is outside the folders of this session, may hold secrets, or a rule speaks against it"
NO_ROOM = "the files before it take all the room; read_file reads it"
_LINES = re.compile(r"^L(\d{1,9})(?:[-:]L?(\d{1,9}))?$")


async def with_linked_files(talk: Conversation, prompt: Prompt) -> Prompt:
    """The prompt with the text of the files that it links to behind its own. All of them together take a
    quarter of what a request may have; each is cut like a result of the tool.
    """
    wanted = list(dict.fromkeys(links(prompt.blocks)))[:MOST_FILES]
    if not wanted:
        return prompt
    budget = effective_context_budget(talk.setup.profile, talk.keeper.route)
    # A token is about four bytes.
    left = budget.dispatch_trim_budget
    parts = [prompt.text]
    for uri in wanted:
        path = path_from_uri(uri) or ""
        text = await read(talk, path, uri, left) if left >= LEAST else refusal(path, NO_ROOM)
        left -= len(text.encode("utf-8", "surrogatepass"))
        parts.append(text)
    return prompt._replace(text="".join(parts))


def links(blocks: tuple[dict[str, object], ...]) -> Iterator[str]:
    """The URIs of linked files of this machine, in order."""
    for block in blocks:
        uri = block.get("uri")
        if block.get("type") == "resource_link" and isinstance(uri, str) and path_from_uri(uri):
            yield uri


async def read(talk: Conversation, path: str, uri: str, left: int) -> str:
    """The file's text under its name, or why it is not there."""
    tool = talk.setup.redaction.tools({TOOL: catalog.load(TOOL)})[TOOL]
    context = talk.tool_context
    arguments = {"path": path, **lines_of(uri)}
    try:
        request = await tool.request(arguments, context)
        if request.outside or request.secret or not talk.approver.allows(TOOL, request):
            return refusal(path, NOT_FREE)
        outcome = await tool.run(arguments, replace(context, judged=request.paths))
    except ToolError as error:
        return refusal(path, error.message)
    limits = (left, talk.setup.profile.max_tool_result_chars or left)
    return fenced(request.subject, truncate_tool_result(outcome.text, min(limits)).text)


def refusal(path: str, why: str) -> str:
    """What stands for a file that is not read."""
    return f"\n[{quote(path)} was not read: {why}]\n"


def lines_of(uri: str) -> Mapping[str, int]:
    """The range of lines that a link names, as the tool takes it; all of the file without one."""
    found = _LINES.match(urlsplit(uri).fragment)
    if found is None or not int(found[1]):
        return {}
    first, last = int(found[1]), int(found[2] or found[1])
    return {"line": first, "limit": max(last - first, 0) + 1}


class Preparing:
    """`runtime.session.session.Preparation` of one session. own: the folder of the user's settings."""

    def __init__(self, own: Path | None) -> None:
        self._guidance = GuidanceFiles(own)

    async def __call__(self, talk: Conversation, prompt: Prompt) -> Prompt:
        """A prompt that no model will see costs nothing."""
        if not talk.setup.kind:
            return prompt
        talk.pending += await self._guidance.before_turn(talk.keeper, talk.tool_context)
        return prompt if is_command(prompt.text) else await with_linked_files(talk, prompt)
