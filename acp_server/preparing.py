"""What is done before each turn of a session: guidance files looked at anew, linked files read."""

from pathlib import Path

from acp_server.guidance_files import GuidanceFiles
from acp_server.linked import with_linked_files
from acp_server.local import is_command
from runtime.conversation import Conversation
from runtime.prompt import Prompt


class Preparing:
    """`runtime.session.Preparation` of one session. own: the folder of the user's settings."""

    def __init__(self, own: Path | None) -> None:
        self._guidance = GuidanceFiles(own)

    async def __call__(self, talk: Conversation, prompt: Prompt) -> Prompt:
        """See the type. A prompt that no model will see costs nothing."""
        if not talk.setup.kind:
            return prompt
        talk.pending += await self._guidance.before_turn(talk.keeper, talk.tool_context)
        return prompt if is_command(prompt.text) else await with_linked_files(talk, prompt)
