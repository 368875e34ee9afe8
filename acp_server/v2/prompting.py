"""`session/prompt` of ACP v2: answered when the prompt is part of the session; all else comes as updates.

A prompt that comes while a turn runs is held: its answer comes when its own turn begins, or says that it was
given up.
"""

from collections.abc import Callable, Mapping

from acp_server.app import App
from acp_server.dispatch import Later, failed
from acp_server.errors import GivenUp, WireError
from acp_server.inbound import parse_prompt
from acp_server.v2.client import V2Client
from acp_server.v2.edition import edition_of
from runtime.custom_commands import meant
from runtime.errors import InvalidParams
from runtime.events import UserMessage
from runtime.prompt import Prompt, with_goal
from runtime.session import CANCELLED, Session, Ticket
from schemas.transcript import PromptStep

METHOD = "session/prompt"


def prompt(app: App, params: Mapping[str, object]) -> Later:
    """A turn. Giving the request up stops it as long as it has no answer."""
    edition = edition_of(app)
    edition.require_login()
    asked = parse_prompt(params)
    if not asked.blocks:
        raise InvalidParams("Invalid params: prompt is empty")
    session = app.session(asked.session_id)
    blocks = tuple(dict(block) for block in asked.blocks)
    text = meant(asked.text, session.conversation.notes.commands)
    ticket = session.submit(with_goal(Prompt(text, blocks)))
    work = PromptWork(session, ticket, edition.client)
    return Later(work.run, cancel=lambda: session.give_up(ticket), bind=work.bind)


class PromptWork:
    """One prompt, from its place in the queue to the end of its turn."""

    def __init__(self, session: Session, ticket: Ticket, client: V2Client) -> None:
        self._session = session
        self._ticket = ticket
        self._client = client
        self._answer: Callable[[object], None] | None = None
        self._begun = False
        self._inserted = False

    def bind(self, answer: Callable[[object], None]) -> None:
        """answer: sends the response, once."""
        self._answer = answer

    async def run(self) -> None:
        """Raises what kept the prompt from becoming part of the session; all later trouble is an update."""
        try:
            stop_reason = await self._session.run(self._ticket, self._begin)
        except Exception as error:
            self._end("error", failed(METHOD, error).error)
            if not self._inserted:
                raise
            return
        except BaseException:
            self._end(CANCELLED)
            raise
        self._end(stop_reason)
        if not self._inserted:
            raise GivenUp("Request cancelled")

    def _begin(self) -> None:
        self._begun = True
        self._session.conversation.notes.on_prompt = self._insert
        self._client.begin(self._session.session_id)

    async def _insert(self, step: PromptStep) -> None:
        assert self._answer is not None  # bound before the work began
        self._inserted = True
        self._answer({"messageId": step.message_id})
        for block in step.blocks:
            await self._client.emit(self._session.session_id, UserMessage(step.message_id, block))

    def _end(self, stop_reason: str, error: WireError | None = None) -> None:
        if self._begun:
            self._session.conversation.notes.on_prompt = None
            self._client.end(self._session.session_id, stop_reason, error)
