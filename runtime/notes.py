"""What an open session notes beside its history: what was used, what was recorded, what is to be done."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from runtime.custom_commands import CustomCommand
from runtime.history.turns import History
from runtime.request_log import RequestLog
from runtime.steps import Recorder
from runtime.usage import Usage
from schemas.transcript import PromptStep


@dataclass(slots=True)
class Notes:
    """spent_before: all that was used before the newest turn.

    commands: those of the user's own making, by name. recorder: of the turn that runs.
    restored: a history, and its rows then, that still lacks the ids of calls in turns that are gone.
    on_prompt: hears of a prompt, with the id that it is stored under, when it became part of the session.
    """

    spent_before: Usage = field(default_factory=Usage)
    requests: RequestLog = field(default_factory=RequestLog)
    restored: tuple[History, int] | None = None
    commands: Mapping[str, CustomCommand] = field(default_factory=dict)
    recorder: Recorder | None = None
    on_prompt: Callable[[PromptStep], Awaitable[None]] | None = None

    async def tell_prompt(self) -> None:
        """Tell the running turn's prompt to whoever wants to hear of it."""
        if self.on_prompt is None or self.recorder is None:
            return
        for _, step in self.recorder.held:
            if isinstance(step, PromptStep):
                await self.on_prompt(step)
                return
