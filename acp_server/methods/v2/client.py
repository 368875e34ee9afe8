"""The client of a connection that speaks ACP v2, and what that connection knows beside its app.

It is told what happens and where each session stands, and asked for permission; it lends neither files nor
terminals, so tools use the disk. Knows no method.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from acp_server.acp.client import PERMISSION_METHOD, AcpClient, Wire, permission_outcome
from acp_server.acp.client_options import AcpSettings, WireOptions, wire_options
from acp_server.acp.size_limits import cut
from acp_server.acp.trim_updates import update
from acp_server.app.app import App
from acp_server.methods.v2.updates import Standing, call_fields, updates
from acp_server.wire.errors import ClientCallError, WireError
from runtime.ports import PermissionOption, PermissionOutcome, Question
from runtime.values.errors import AuthRequired
from runtime.values.events import Event, HistoryTrimmed, ToolCallStarted
from schemas.acp import initialize, v2

_TITLE_LENGTH = 1000
_DESCRIPTION_LIMIT = 64 * 1024


class V2Client(AcpClient):
    """`runtime.ports.Client` over such a connection. standings: of its sessions, by id."""

    def __init__(self, wire: Wire, options: WireOptions, standings: Mapping[str, Standing]) -> None:
        super().__init__(wire, options)
        self._standings = standings

    async def emit(self, session_id: str, event: Event) -> None:
        """Queue the event's messages. A trim is told whole or not at all, and nothing comes between."""
        standing = self._standings[session_id]
        standing.note(event)
        self._tell_change(session_id, standing)
        whole = isinstance(event, HistoryTrimmed)
        for number, frame in enumerate(updates(session_id, event, self._options, standing)):
            if whole and number:
                self._wire.notify_nowait(*frame)
            else:
                await self._wire.notify(*frame)

    # ------------------------------------------------------------ where it stands

    def begin(self, session_id: str) -> None:
        """A turn begins."""
        standing = self._standings[session_id]
        standing.begin()
        self._tell(session_id, standing, {})

    def end(self, session_id: str, stop_reason: str, error: WireError | None = None) -> None:
        """A turn ended. error: what broke it, with the stop reason `error`."""
        standing = self._standings[session_id]
        standing.active = False
        facts: dict[str, object] = {"stopReason": stop_reason}
        if error is not None:
            told: dict[str, object] = {"code": error.code, "message": error.message}
            facts["error"] = {**told, "data": dict(error.data)} if error.data else told
        self._tell(session_id, standing, facts)

    def snapshot(self, session_id: str, *, running: bool) -> None:
        """Where it stands now. running: a turn runs, whoever began it."""
        standing = self._standings[session_id]
        self._tell(session_id, standing, {"state": "running"} if running and not standing.active else {})

    def _tell_change(self, session_id: str, standing: Standing) -> None:
        if standing.active and standing.state != standing.told:
            self._tell(session_id, standing, {})

    def _tell(self, session_id: str, standing: Standing, facts: Mapping[str, object]) -> None:
        standing.told = standing.state
        body = {"sessionUpdate": "state_update", "state": standing.told, **facts}
        self._wire.notify_nowait(*update(session_id, body))

    # ------------------------------------------------------------ questions

    async def request_permission(
        self, session_id: str, call: ToolCallStarted, options: Sequence[PermissionOption]
    ) -> PermissionOutcome:
        """Ask the person. Only an option that was on offer allows; what says no does not end the turn.

        Here a client may answer `cancelled` also when the question was put away; who wants to end the turn
        says so.
        """
        params: dict[str, object] = {
            "sessionId": session_id,
            "title": call.title[:_TITLE_LENGTH] or call.name,
            "subject": {"type": "tool_call", "toolCall": call_fields(call)},
            "options": [
                {"optionId": option.option_id, "name": option.name, "kind": option.kind} for option in options
            ],
        }
        if call.content:
            params["description"] = cut(call.content, _DESCRIPTION_LIMIT)
        standing = self._standings[session_id]
        standing.questions += 1
        self._tell_change(session_id, standing)
        try:
            answer = await self._wire.call(PERMISSION_METHOD, params)
        except ClientCallError:
            answer = None
        # One that was stopped stays open: nothing goes on from there but the end of the turn.
        standing.questions -= 1
        self._tell_change(session_id, standing)
        return PermissionOutcome(permission_outcome(answer, options).chosen)

    async def ask(self, session_id: str, question: Question) -> str | None:
        """The person's answer to a form of one field; None for none."""
        standing = self._standings[session_id]
        standing.forms += 1
        self._tell_change(session_id, standing)
        answer = await super().ask(session_id, question)
        standing.forms -= 1
        self._tell_change(session_id, standing)
        return answer


class SecondEdition:
    """ACP v2 on one connection. logged_out: the client said so, and has not logged in since."""

    def __init__(self) -> None:
        self.logged_out = False
        self.standings: defaultdict[str, Standing] = defaultdict(Standing)
        self._client: V2Client | None = None

    @property
    def client(self) -> V2Client:
        """The client, once a session was opened."""
        if self._client is None:
            raise RuntimeError("no session was opened on this connection")
        return self._client

    def make_client(self, wire: Wire, params: Mapping[str, object], settings: AcpSettings) -> V2Client:
        """Notices and compactions need no capability here."""
        offered = v2.InitializeParams.model_validate(params).capabilities
        taken = initialize.ClientCapabilities(
            session=initialize.ClientSessionCapabilities.model_construct(notices=True, compaction=True),
            elicitation=offered.elicitation,
            meta=offered.meta,
        )
        options = wire_options(
            taken,
            history_trimmed=settings.history_trimmed,
            visible_trim_notice=settings.visible_trim_notice,
        )
        self._client = V2Client(wire, options, self.standings)
        return self._client

    def require_login(self) -> None:
        """Raises AuthRequired after a logout."""
        if self.logged_out:
            raise AuthRequired("This client logged out; auth/login comes first.")


def edition_of(app: App) -> SecondEdition:
    """The connection's; there is one as soon as v2 methods are answered."""
    assert isinstance(app.edition, SecondEdition)
    return app.edition
