"""ACP's methods as they are answered over the gateway: the same table, but for what several clients share."""

from collections.abc import Mapping

from acp_server.dispatch import Answer, Handler, Later
from acp_server.gateway.seat import Seat
from acp_server.hello import initialize_result
from acp_server.inbound import parse
from acp_server.methods import options, prompting, sessions
from acp_server.methods import table as stdio
from runtime.events import OptionsChanged
from schemas.acp.options import SetConfigOptionParams
from schemas.acp.prompt import CancelParams
from schemas.acp.session import DeleteSessionParams, LoadSessionParams


def initialize(seat: Seat, params: Mapping[str, object]) -> Answer:
    """`initialize`. The draft of the next version is for one client at a time, so it is not offered here."""
    return Answer(initialize_result(params))


def load(seat: Seat, params: Mapping[str, object]) -> Later:
    """`session/load`: what happened meanwhile is told behind the answer, as all that is live."""
    stored = sessions.load(seat, params)
    session_id = parse(LoadSessionParams, params).session_id

    async def run() -> object:
        try:
            return await stored.run()
        except BaseException:
            await seat.hub.catch_up(session_id, seat)
            raise

    async def then() -> None:
        await seat.hub.catch_up(session_id, seat)
        if stored.then is not None:
            await stored.then()

    return Later(run, then)


def prompt(seat: Seat, params: Mapping[str, object]) -> Answer | Later:
    """`session/prompt`: a turn that goes on when this connection is gone."""
    turn = prompting.prompt(seat, params)
    return seat.asked(str(params["sessionId"]), turn) if isinstance(turn, Later) else turn


def cancel(seat: Seat, params: Mapping[str, object]) -> None:
    """`session/cancel`: of a session that this client has open; whoever prompted there."""
    if parse(CancelParams, params).session_id in seat.opened:
        prompting.cancel(seat, params)


def delete(seat: Seat, params: Mapping[str, object]) -> Later:
    """`session/delete`: ended for everybody, and gone for good."""
    session_id, rest = parse(DeleteSessionParams, params).session_id, sessions.delete(seat, params)

    async def run() -> object:
        await seat.shared.end_session(session_id)
        return await rest.run()

    return Later(run)


def set_config_option(seat: Seat, params: Mapping[str, object]) -> Later:
    """`session/set_config_option`: the answer tells this client, an update the others."""
    asked, change = parse(SetConfigOptionParams, params), options.set_config_option(seat, params)

    async def run() -> object:
        result = await change.run()
        talk = seat.session(asked.session_id).conversation
        await seat.hub.room(asked.session_id).tell(OptionsChanged(talk.offers()), besides=seat)
        return result

    return Later(run)


METHODS: Mapping[str, Handler[Seat]] = {
    **stdio.METHODS,
    "initialize": initialize,
    "session/load": load,
    "session/prompt": prompt,
    "session/cancel": cancel,
    "session/delete": delete,
    "session/set_config_option": set_config_option,
}
